"""A backend under test: how exactly it answers, and how its models are opened, built first where that is due."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jetsel.base.host_settings import HostSettings
from jetsel.base.weights import Weights
from jetsel.engines import Backends, Engine
from jetsel.engines.building.builder import Builder, EngineOrder
from jetsel.engines.building.plans import EnginePlan
from jetsel.zoo import STARTER
from tests.contract.tiny import CLASSES, HEIGHT_PX, WIDTH_PX

MAX_BATCH = 16  # the suite's largest batch: an engine is built for some number of images
STARTER_CLASSES, STARTER_SIDE_PX = 100, 64


@dataclass(frozen=True)
class Subject:
    """One way of running models.

    tolerance: the largest error of a logit of the suite's models, which lie within 20 of 0. rounding: the largest
    relative error of a number that a model only passes on.
    """

    backend: str
    host: HostSettings = field(default_factory=lambda: HostSettings(engines="/nonexistent"))
    tolerance: float = 1e-5
    rounding: float = 0.0

    @property
    def is_built(self) -> bool:
        """Whether it runs engines that have to be built from the models."""
        return self.backend == "tensorrt"

    @property
    def max_batch(self) -> int | None:
        """How many images a model with a free batch takes at a time."""
        return self.host.max_batch if self.is_built else None

    @property
    def callers(self) -> tuple[int, int]:
        """How many it serves at a time of four that are asked for, and of two."""
        return (4, 2) if self.backend == "onnxruntime" else (2, 1)  # a host runs one, and one stands ready


class Models:
    """Opens the models of one subject."""

    def __init__(self, subject: Subject) -> None:
        self.backends = Backends(subject.host)
        self._subject = subject
        self._builder: Builder | None = None

    def open(self, weights: Weights, *, concurrency: int = 1, threads: int = 1) -> Engine:
        """Load a model, built before where it has to be; raises EngineFailedError."""
        if self._subject.is_built:
            self.build(weights)
        return self.backends.open(self._subject.backend, weights, concurrency=concurrency, threads=threads)

    def build(self, weights: Weights) -> EnginePlan:
        """Build a model's engine unless it stands, as `jetsel models build` does; raises EngineFailedError."""
        if self._builder is None:
            self._builder = Builder(self._subject.host)
        return self._builder.build(EngineOrder(weights, has_qdq=False, inputs=Noise(weights)))

    def close(self) -> None:
        """Close what the models share."""
        self.backends.close()


class Noise:
    """Inputs of a model to compare its engine on, the same at each pass; see jetsel.engines.building.trial.Inputs."""

    def __init__(self, weights: Weights, count: int = 4, largest: float = 2.0) -> None:
        self.source = "noise"
        self._shape = (1, 3, weights.height_px, weights.width_px)
        self._count, self._largest = count, largest

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[NDArray[np.float32]]:
        draw = np.random.default_rng(1)
        for _ in range(self._count):
            yield draw.uniform(-self._largest, self._largest, self._shape).astype(np.float32)


def weights_of(path: Path) -> Weights:
    """What is to be loaded from this file: the starter family's or the tiny model's."""
    content = path.read_bytes() if path.is_file() else b""
    size = (STARTER_SIDE_PX, STARTER_SIDE_PX, STARTER_CLASSES)
    height_px, width_px, classes = size if path.parent == STARTER else (HEIGHT_PX, WIDTH_PX, CLASSES)
    return Weights(path.stem, path, hashlib.sha256(content).hexdigest(), height_px, width_px, classes)


def photographs(count: int, seed: int = 0) -> NDArray[np.float32]:
    """Return inputs of the starter family, in the range that normalised pixels have."""
    draw = np.random.default_rng(seed)
    return draw.uniform(-2, 2, (count, 3, STARTER_SIDE_PX, STARTER_SIDE_PX)).astype(np.float32)
