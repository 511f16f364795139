"""The engine host: one process that owns the GPU and runs models for the daemon that started it.

It runs under the board's own Python, 3.6 on a Jetson TX2, and imports the standard library and numpy, and on demand
tensorrt with pycuda, or onnxruntime; nothing of jetsel. Started as `INTERPRETER -I host --fd N --backend BACKEND` over
an inherited socketpair it answers one message after the other until the daemon closes its end; docs/engine-host.md
describes the messages. One thread does everything, so an answer proves that the thread that infers is alive.
"""
