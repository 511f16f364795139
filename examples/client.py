"""A client that needs pyzmq and nothing of jetsel. Usage: python client.py ipc:///run/jetsel/jetsel.sock cat.jpg."""

import json
import sys
import uuid
from pathlib import Path

import zmq

endpoint, path = sys.argv[1:]
socket = zmq.Context().socket(zmq.DEALER)
socket.linger = 0  # do not wait at exit if no daemon is there
socket.connect(endpoint)
request = {"v": 1, "type": "classify", "id": uuid.uuid4().hex, "top_k": 3}
socket.send_multipart([json.dumps(request).encode(), Path(path).read_bytes()])
if not socket.poll(10_000):
    sys.exit("no reply within 10 s")
reply = json.loads(socket.recv())
if reply["type"] == "failure":
    sys.exit(f"{reply['code']}: {reply['message']}")
for ranked in reply["top_k"]:
    print(f"{ranked['probability']:.3f} {ranked['label']} (answered by {reply['model']})")
