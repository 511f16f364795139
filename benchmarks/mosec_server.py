"""mosec serving one model with jetsel's own decoding and engine. Started by the benchmarks alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import cv2
import msgspec
import numpy as np
from mosec import Server, Worker

from benchmarks.bare import LIMITS
from jetsel import image
from jetsel.engines import warm_up
from jetsel.engines.onnx import OnnxEngine
from jetsel.wire import Ranked
from jetsel.zoo import scan

TOP_K = 5


class Answer(msgspec.Struct, frozen=True):
    """What is answered: less than jetsel says, since nothing was chosen."""

    label: str
    wnid: str
    probability: float
    top_k: list[Ranked]


class Classifier(Worker):
    """One process with one engine."""

    def __init__(self) -> None:
        cv2.setNumThreads(1)
        (family,) = scan([Path(os.environ["BENCHMARKS_MODELS"])]).families.values()
        (model,) = (m for m in family.models if m.manifest.name == os.environ["BENCHMARKS_MODEL"])
        self._labels = family.labels
        self._spec = model.manifest.input
        self._needed = family.decode_px
        self._engine = OnnxEngine(model.manifest.name, model.path, concurrency=1, threads=1)
        warm_up(self._engine, model.weights(len(self._labels.names)))

    def deserialize(self, data: bytes) -> Any:
        """Decode the photograph."""
        return image.decode(data, LIMITS, self._needed)

    def forward(self, data: Any) -> Answer:
        """Run the model and put its most probable labels into words."""
        logits = self._engine.infer(image.model_input(data, self._spec)).logits[0]
        probabilities = np.exp(logits - logits.max())
        probabilities /= probabilities.sum()
        order = np.argsort(-probabilities, kind="stable")[:TOP_K].tolist()
        top = [Ranked(self._labels.names[i], self._labels.wnids[i], float(probabilities[i])) for i in order]
        return Answer(top[0].label, top[0].wnid, top[0].probability, top)

    def serialize(self, data: Answer) -> bytes:
        """Write the answer as JSON with the library that jetsel uses: mosec's default is slower."""
        return msgspec.json.encode(data)


if __name__ == "__main__":
    server = Server()
    server.append_worker(Classifier, num=int(os.environ["BENCHMARKS_WORKERS"]))  # batches of one: its default
    server.run()
