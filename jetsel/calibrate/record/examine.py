"""One image through all that is recorded of it: decoded once, its features, its hash, what each model answers."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from jetsel import image
from jetsel.base.errors import BadImageError, ImageTooLargeError
from jetsel.calibrate.record.bench import RecordOptions, features_of
from jetsel.calibrate.record.contents import Task
from jetsel.calibrate.record.database import Store
from jetsel.engines import Engine, EngineFailedError
from jetsel.zoo import Family

MOST_BITS = 8
"""Up to this many of the 64 bits may differ between near-duplicates.

Measured: among 8,000 unrelated photographs of 64 x 64 pixels (32 million pairs) none differ in 8 bits or fewer, 14
pairs in 10, 113 in 12. Of the same photographs half or twice as large, saved as JPEG of quality 20, brighter or noisy,
99.8 % and more stay within 8; cropped by 3 % of their sides 98 % and more, of full-size ones cropped at one corner
87 %. A pair joined wrongly only shares a fold.
"""

_SIDE_PX, _KEPT = 32, 8
_ROWS = 256  # hashes compared with all others at a time


def perceptual_hash(bgr: NDArray[np.uint8]) -> int:
    """Return 64 bits: which low frequencies of the photograph's grey levels are above their median (pHash).

    bgr: (height, width, 3) uint8. The 8 x 8 lowest of the cosine transform of 32 x 32 grey levels, row by row, highest
    bit first, as a signed number, which is what SQLite has; the median leaves out the mean. Coefficients are rounded,
    so that a flat photograph has no noise to hash.
    """
    gray = cv2.resize(cv2.cvtColor(bgr, cv2.COLOR_BGR2GRAY), (_SIDE_PX, _SIDE_PX), interpolation=cv2.INTER_AREA)
    lowest = np.round(cv2.dct(gray.astype(np.float32))[:_KEPT, :_KEPT]).ravel()
    return int.from_bytes(np.packbits(lowest > np.median(lowest[1:])).tobytes(), "big", signed=True)


def groups(hashes: NDArray[np.int64], most_bits: int = MOST_BITS) -> NDArray[np.int64]:
    """Return a group number for each hash, (n,), from 0 in order of first appearance.

    Hashes that differ in at most most_bits bits share a group, and so do those joined by a row of such.
    """
    if len(hashes) == 0:
        return np.zeros(0, np.int64)
    unique, place = np.unique(hashes, return_inverse=True)
    parent = list(range(len(unique)))
    bits = np.unpackbits(unique.astype(">i8").view(np.uint8).reshape(-1, 8), axis=1)
    signs = bits.astype(np.float32) * 2 - 1  # the product of two rows is 64 minus twice the bits in which they differ
    for top in range(0, len(unique), _ROWS):
        close = signs[top : top + _ROWS] @ signs[top:].T >= 64 - 2 * most_bits
        for row, column in zip(*(side.tolist() for side in np.nonzero(close)), strict=True):
            first, second = _root(parent, top + row), _root(parent, top + column)
            parent[max(first, second)] = min(first, second)
    roots = np.array([_root(parent, i) for i in range(len(unique))])[place.ravel()]
    _, first_seen, numbers = np.unique(roots, return_index=True, return_inverse=True)
    in_order = np.argsort(np.argsort(first_seen))
    found: NDArray[np.int64] = in_order[numbers.ravel()].astype(np.int64)
    return found


def _root(parent: list[int], item: int) -> int:
    while parent[item] != item:
        parent[item] = parent[parent[item]]
        item = parent[item]
    return item


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
        self._free = {name: threading.BoundedSemaphore(engine.concurrency) for name, engine in engines.items()}

    def __call__(self, task: Task) -> Examined | str:
        """Return what is new of it, or the reason why the file cannot be used. Raises EngineFailedError."""
        try:
            data = image.read_file(task.photograph.path, self._limits)
            began = time.thread_time()
            photograph = image.decode(data, self._limits, self._family.decode_px)
            decode_ms = (time.thread_time() - began) * 1e3
        except OSError as fault:
            return f"unreadable: {fault.strerror}"
        except (BadImageError, ImageTooLargeError) as fault:
            return f"unreadable: {fault}"
        if hashlib.sha256(data).hexdigest() != task.sha256:
            return "changed: the file changed during the recording; record again"
        facts = self._facts(photograph, data, decode_ms) if task.number is None else None
        return Examined(facts, {name: self._ask(name, photograph) for name in task.missing})

    def _facts(self, photograph: image.Photograph, data: bytes, decode_ms: float) -> dict[str, object]:
        began = time.thread_time()
        features = features_of(photograph, data, self._limits, self._features_px)
        return {
            "features": features.astype("<f4").tobytes(),
            "features_ms": (time.thread_time() - began) * 1e3,
            "near_hash": perceptual_hash(photograph.bgr),
            "width_px": photograph.width_px,
            "height_px": photograph.height_px,
            "decode_ms": decode_ms,
        }

    def _ask(self, name: str, photograph: image.Photograph) -> Said:
        batch = image.model_input(photograph, self._specs[name])
        with self._free[name]:
            output = self._engines[name].infer(batch)
        logits, cheapest = _halved(name, output.logits[0]), self._family.models[0].manifest
        if name != cheapest.name or cheapest.embedding_width is None:
            return logits, None
        if output.embedding is None:
            raise EngineFailedError(f"{name} gives no embedding, although its manifest lists one: export it again")
        return logits, _halved(name, output.embedding[0])


def write(store: Store, task: Task, seen: Examined) -> None:
    """Put what is new of a photograph into the recording."""
    photograph = task.number
    if seen.facts is not None:
        done = store.connection.execute(
            "INSERT INTO photographs (path, sha256, class, label, width_px, height_px, near_hash, features, decode_ms,"
            " features_ms) VALUES (:path, :sha256, :class, :label, :width_px, :height_px, :near_hash, :features,"
            " :decode_ms, :features_ms)",
            {
                **seen.facts,
                "path": str(task.photograph.path),
                "sha256": task.sha256,
                "class": task.photograph.class_number,
                "label": task.photograph.label,
            },
        )
        photograph = done.lastrowid
    store.connection.executemany(
        "INSERT INTO predictions (photograph, model, logits, embedding) SELECT ?, id, ?, ? FROM wanted WHERE name = ?",
        [(photograph, logits, embedding, name) for name, (logits, embedding) in seen.said.items()],
    )


def _halved(name: str, numbers: NDArray[np.float32]) -> bytes:
    with np.errstate(over="ignore"):  # what overflows is refused below
        halved = numbers.astype("<f2")
    if not np.isfinite(halved).all():
        raise EngineFailedError(f"{name} returns numbers that are not finite, or are above 65504: export it again")
    return halved.tobytes()
