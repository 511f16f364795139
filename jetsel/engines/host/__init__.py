"""The engine host: a process that owns the GPU and runs models for the daemon that started it.

It runs under the board's own Python, 3.6 on a Jetson TX2. It imports the standard library and numpy, and tensorrt with
pycuda or onnxruntime if needed, but nothing else of jetsel. The daemon starts it as `INTERPRETER -I host --fd N
--backend BACKEND` with an inherited socket; it answers one message after the other until the daemon closes its end
(docs/engine-host.md). It has one thread, so that a reply to a ping proves that the thread which runs models is alive.
"""
