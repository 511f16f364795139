"""Examine one image for the recording: decode it once, extract features and hash, and run each model."""

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
from jetsel.calibrate.record.contents import RecordingTask
from jetsel.calibrate.record.cuts import CutImage, TooSmallError, decode_cut
from jetsel.calibrate.record.database import Store
from jetsel.engines import Engine, EngineFailedError, Output
from jetsel.features.near_duplicates import perceptual_hash
from jetsel.zoo import Family

EncodedOutput = tuple[bytes, bytes | None]
"""One model's output: logits and, for the cheapest model alone, the embedding; each float16, little-endian."""


@dataclass(frozen=True, eq=False)
class Examined:
    """New results of one image. facts: columns of its row, None if they are recorded already. outputs: by model.

    In facts, decode_ms and features_ms are processor time of one thread, because wall time would include waiting for
    other threads. Timing the models later replaces features_ms with wall time.
    """

    facts: Mapping[str, object] | None
    outputs: Mapping[str, EncodedOutput]


class Examiner:
    """Decodes images, extracts features and runs models, from any number of threads at a time.

    Each engine runs at most `engine.concurrency` calls at a time. A caller adds models to `dropped` to stop them.
    """

    def __init__(self, family: Family, engines: Mapping[str, Engine], options: RecordOptions) -> None:
        self._family, self._engines, self._options = family, engines, options
        self._specs = {model.manifest.name: model.manifest.input for model in family.models}
        self.dropped: set[str] = set()
        self.durations_ms: dict[str, list[float]] = {name: [] for name in engines}  # wall time, other threads run too
        self._slots = {name: threading.BoundedSemaphore(engine.concurrency) for name, engine in engines.items()}

    def __call__(self, task: RecordingTask) -> Examined | str:
        """Return the results that the task's image lacks, or why it cannot be used. Raises EngineFailedError."""
        try:
            data = image.read_file(task.photograph.path, self._options.limits)
            began = time.thread_time()
            prepared = decode_cut(data, task.photograph.cut, self._options.limits, self._family.decode_px)
            decode_ms = (time.thread_time() - began) * 1e3
        except OSError as fault:
            return f"unreadable: {fault.strerror}"
        except TooSmallError as fault:
            return str(fault)
        except (BadImageError, ImageTooLargeError) as fault:
            return f"unreadable: {fault}"
        if hashlib.sha256(data).hexdigest() != task.sha256:
            return "changed: the file changed during the recording; record again"
        facts = self._facts(prepared, decode_ms) if task.number is None else None
        missing = [name for name in task.missing if name not in self.dropped]
        return Examined(facts, {name: self._run_model(name, prepared.photograph) for name in missing})

    def infer(self, name: str, batch: NDArray[np.float32]) -> Output:
        """Run one model on a batch as `Engine.infer` does; wait while its engine is busy."""
        with self._slots[name]:
            return self._engines[name].infer(batch)

    def _facts(self, prepared: CutImage, decode_ms: float) -> dict[str, object]:
        began = time.thread_time()
        features = prepared.extract(self._options.limits, self._options.features_px)
        return {
            "features": features.astype("<f4").tobytes(),
            "features_ms": (time.thread_time() - began) * 1e3,
            "near_hash": perceptual_hash(prepared.whole.bgr),  # all parts of an image are held out together
            "width_px": prepared.photograph.width_px,
            "height_px": prepared.photograph.height_px,
            "decode_ms": decode_ms,
        }

    def _run_model(self, name: str, photograph: image.Photograph) -> EncodedOutput:
        began = time.perf_counter()
        batch = image.model_input(photograph, self._specs[name])
        output = self.infer(name, batch)
        self.durations_ms[name].append((time.perf_counter() - began) * 1e3)
        logits, cheapest_manifest = _to_float16(name, output.logits[0]), self._family.models[0].manifest
        if name != cheapest_manifest.name or cheapest_manifest.embedding_width is None:
            return logits, None
        if output.embedding is None:
            raise EngineFailedError(f"{name} gives no embedding, although its manifest lists one: export it again")
        return logits, _to_float16(name, output.embedding[0])


def write_results(store: Store, task: RecordingTask, examined: Examined) -> None:
    """Write the new results of an image into the recording, and its row if it is new."""
    image_id = task.number
    if examined.facts is not None:
        cursor = store.connection.execute(
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
        image_id = cursor.lastrowid
    store.connection.executemany(
        "INSERT INTO predictions (photograph, model, logits, embedding) SELECT ?, id, ?, ? FROM wanted WHERE name = ?",
        [(image_id, logits, embedding, name) for name, (logits, embedding) in examined.outputs.items()],
    )


def _to_float16(name: str, numbers: NDArray[np.float32]) -> bytes:
    with np.errstate(over="ignore"):  # overflow is refused below
        halved = numbers.astype("<f2")
    if not np.isfinite(halved).all():
        raise EngineFailedError(f"{name} returns numbers that are not finite, or are above 65504: export it again")
    return halved.tobytes()
