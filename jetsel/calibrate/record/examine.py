"""One image through all that is recorded of it: decoded once, its features, its hash, what each model answers."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jetsel import image
from jetsel.base.errors import BadImageError, ImageTooLargeError
from jetsel.calibrate.record.bench import RecordOptions
from jetsel.calibrate.record.contents import Task
from jetsel.calibrate.record.cuts import Shown, TooSmallError, show
from jetsel.calibrate.record.database import Store
from jetsel.engines import Engine, EngineFailedError, Output
from jetsel.features.near_duplicates import perceptual_hash
from jetsel.zoo import Family

Said = tuple[bytes, bytes | None]
"""One model's answer: logits and, of the cheapest model alone, the embedding; each float16, little-endian."""


@dataclass(frozen=True, eq=False)
class Examined:
    """What is new of one photograph. facts: columns of its row, None if they are recorded already; said: by model.

    decode_ms, features_ms: processor time of the one thread that did it: the wall's clock would count how it waited for
    the other threads of a recording. If models are timed features are too, by the wall's clock on a quiet machine.
    """

    facts: Mapping[str, object] | None
    said: Mapping[str, Said]


class Examiner:
    """Examines photographs from any number of threads; each engine serves as many at a time as it says."""

    def __init__(self, family: Family, engines: Mapping[str, Engine], options: RecordOptions) -> None:
        """Nothing is done yet."""
        self._family = family
        self._engines = engines
        self._limits, self._features_px = options.limits, options.features_px
        self._specs = {model.manifest.name: model.manifest.input for model in family.models}
        self.dropped: set[str] = set()  # models that are asked no more
        self.taken_ms: dict[str, list[float]] = {name: [] for name in engines}  # by model, beside other threads
        self._free = {name: threading.BoundedSemaphore(engine.concurrency) for name, engine in engines.items()}

    def __call__(self, task: Task) -> Examined | str:
        """Return what is new of it, or the reason why the file cannot be used. Raises EngineFailedError."""
        try:
            data = image.read_file(task.photograph.path, self._limits)
            began = time.thread_time()
            shown = show(data, task.photograph.cut, self._limits, self._family.decode_px)
            decode_ms = (time.thread_time() - began) * 1e3
        except OSError as fault:
            return f"unreadable: {fault.strerror}"
        except TooSmallError as fault:
            return str(fault)
        except (BadImageError, ImageTooLargeError) as fault:
            return f"unreadable: {fault}"
        if hashlib.sha256(data).hexdigest() != task.sha256:
            return "changed: the file changed during the recording; record again"
        facts = self._facts(shown, decode_ms) if task.number is None else None
        missing = [name for name in task.missing if name not in self.dropped]
        return Examined(facts, {name: self._ask(name, shown.photograph) for name in missing})

    def infer(self, name: str, batch: NDArray[np.float32]) -> Output:
        """Let one model answer, as soon as its engine is free."""
        with self._free[name]:
            return self._engines[name].infer(batch)

    def _facts(self, shown: Shown, decode_ms: float) -> dict[str, object]:
        began = time.thread_time()
        features = shown.extract(self._limits, self._features_px)
        return {
            "features": features.astype("<f4").tobytes(),
            "features_ms": (time.thread_time() - began) * 1e3,
            "near_hash": perceptual_hash(shown.whole.bgr),  # all parts of an image are held out together
            "width_px": shown.photograph.width_px,
            "height_px": shown.photograph.height_px,
            "decode_ms": decode_ms,
        }

    def _ask(self, name: str, photograph: image.Photograph) -> Said:
        began = time.perf_counter()
        batch = image.model_input(photograph, self._specs[name])
        output = self.infer(name, batch)
        self.taken_ms[name].append((time.perf_counter() - began) * 1e3)
        logits, cheapest = _halved(name, output.logits[0]), self._family.models[0].manifest
        if name != cheapest.name or cheapest.embedding_width is None:
            return logits, None
        if output.embedding is None:
            raise EngineFailedError(f"{name} gives no embedding, although its manifest lists one: export it again")
        return logits, _halved(name, output.embedding[0])


def write(store: Store, task: Task, examined: Examined) -> None:
    """Put what is new of a photograph into the recording."""
    photograph = task.number
    if examined.facts is not None:
        done = store.connection.execute(
            "INSERT INTO photographs (path, sha256, source, cut, class, label, width_px, height_px, near_hash,"
            " features, decode_ms, features_ms) VALUES (:path, :sha256, :source, :cut, :class, :label, :width_px,"
            " :height_px, :near_hash, :features, :decode_ms, :features_ms)",
            {
                **examined.facts,
                "path": str(task.photograph.path),
                "sha256": task.key,
                "source": task.sha256,
                "cut": task.photograph.cut.text,
                "class": task.photograph.class_number,
                "label": task.photograph.label,
            },
        )
        photograph = done.lastrowid
    store.connection.executemany(
        "INSERT INTO predictions (photograph, model, logits, embedding) SELECT ?, id, ?, ? FROM wanted WHERE name = ?",
        [(photograph, logits, embedding, name) for name, (logits, embedding) in examined.said.items()],
    )


def _halved(name: str, numbers: NDArray[np.float32]) -> bytes:
    with np.errstate(over="ignore"):  # what overflows is refused below
        halved = numbers.astype("<f2")
    if not np.isfinite(halved).all():
        raise EngineFailedError(f"{name} returns numbers that are not finite, or are above 65504: export it again")
    return halved.tobytes()
