"""The least that could answer over ZeroMQ: one ROUTER, one thread, decode, infer, a fixed reply. For benchmarks alone.

No protocol is read, nothing is checked, chosen or counted, no label is looked up: what it adds to the bare loop is what
the socket itself costs, which no daemon behind one can stay below.
"""

from __future__ import annotations

import sys

import cv2
import zmq

from benchmarks.bare import LIMITS
from jetsel import image
from jetsel.engines import warm_up
from jetsel.engines.onnx import OnnxEngine
from jetsel.zoo import STARTER, scan

REPLY = b'{"type":"answer"}'


def main(endpoint: str, name: str) -> None:
    """Answer until killed."""
    cv2.setNumThreads(1)
    (family,) = scan([STARTER]).families.values()
    (model,) = (m for m in family.models if m.manifest.name == name)
    spec = model.manifest.input
    engine = OnnxEngine(name, model.path, concurrency=1, threads=1)
    warm_up(engine, model.weights(len(family.labels.names)))
    router = zmq.Context().socket(zmq.ROUTER)
    router.bind(endpoint)
    while True:
        peer, *_, photograph = router.recv_multipart(copy=False)
        decoded = image.decode(photograph.buffer, LIMITS, family.decode_px)
        engine.infer(image.model_input(decoded, spec))
        router.send_multipart([peer, REPLY])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
