"""One photograph through all that is recorded of it: decoded once, its features, what each model says."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jetsel import image
from jetsel.calibrate.record.contents import Task
from jetsel.calibrate.record.near import perceptual_hash
from jetsel.engines import Engine, EngineFailedError
from jetsel.errors import BadImageError, ImageTooLargeError
from jetsel.features import extract
from jetsel.zoo import Family


@dataclass(frozen=True, eq=False)
class Facts:
    """What the chooser and the report need of a photograph. features: (f,) float32, in the table's order.

    decode_ms, features_ms: processor time of the one thread that did it: the wall's clock would count how it waited for
    the other threads of a recording. Where models are timed these are too, by the wall's clock on a quiet machine.
    """

    width_px: int
    height_px: int
    near_hash: int
    features: NDArray[np.float32]
    decode_ms: float
    features_ms: float


@dataclass(frozen=True, eq=False)
class Said:
    """One model's answer. logits: (c,) float16; embedding: (width,) float16, None but for the cheapest model."""

    logits: NDArray[np.float16]
    embedding: NDArray[np.float16] | None


@dataclass(frozen=True, eq=False)
class Seen:
    """What is new of one photograph. facts: None where they are recorded already."""

    facts: Facts | None
    said: Mapping[str, Said]


class Examiner:
    """Examines photographs from any number of threads; each engine serves as many at a time as it says."""

    def __init__(self, family: Family, engines: Mapping[str, Engine], limits: image.Limits) -> None:
        self._family = family
        self._engines = engines
        self._limits = limits
        self._specs = {model.manifest.name: model.manifest.input for model in family.models}
        self._free = {name: threading.BoundedSemaphore(engine.concurrency) for name, engine in engines.items()}

    def __call__(self, task: Task) -> Seen | str:
        """Return what is new of it, or the reason why the file cannot be used. Raises EngineFailedError."""
        try:
            data = image.read_file(Path(task.path), self._limits)
            began = time.thread_time()
            photograph = image.decode(data, self._limits, self._family.decode_px)
            decode_ms = (time.thread_time() - began) * 1e3
        except OSError as fault:
            return f"unreadable: {fault.strerror}"
        except (BadImageError, ImageTooLargeError) as fault:
            return f"unreadable: {fault}"
        if hashlib.sha256(data).hexdigest() != task.sha256:
            return "changed: it was written to meanwhile; record again"
        facts = _facts(photograph, decode_ms) if task.photograph is None else None
        return Seen(facts, {name: self._ask(name, photograph) for name in task.missing})

    def _ask(self, name: str, photograph: image.Photograph) -> Said:
        batch = image.model_input(photograph, self._specs[name])
        with self._free[name]:
            output = self._engines[name].infer(batch)
        logits, cheapest = _halved(name, output.logits[0]), self._family.models[0].manifest
        if name != cheapest.name or cheapest.embedding_width is None:
            return Said(logits, None)
        if output.embedding is None:
            raise EngineFailedError(f"{name} gives no embedding and its manifest says that it does: export it again")
        return Said(logits, _halved(name, output.embedding[0]))


def _facts(photograph: image.Photograph, decode_ms: float) -> Facts:
    began = time.thread_time()
    features = extract(photograph.bgr)
    features_ms = (time.thread_time() - began) * 1e3
    near_hash = perceptual_hash(photograph.bgr)
    return Facts(photograph.width_px, photograph.height_px, near_hash, features, decode_ms, features_ms)


def _halved(name: str, numbers: NDArray[np.float32]) -> NDArray[np.float16]:
    with np.errstate(over="ignore"):  # what overflows is refused below
        halved = numbers.astype("<f2")
    if not np.isfinite(halved).all():
        raise EngineFailedError(f"{name} answers numbers that are not finite, or above 65504: export it again")
    return halved
