"""What every backend offers: one loaded model that turns a batch into logits, or fails with a reason."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from jetsel.base.errors import JetselError
from jetsel.base.weights import Weights
from jetsel.wire.status import HostStatus

SAME_ANSWER = 0.1
"""Of the range of the logits: 8-bit models that scale a batch as a whole differ by 0.005, half precision by less."""
ROUNDING = 1e-3  # of the largest logit, if all of them are alike


class EngineFailedError(JetselError):
    """A model that does not load, or a run that gave no usable output. Never a stand-in array."""

    code = "model-unavailable"


class Output(NamedTuple):
    """One run. logits: (n, classes) float32; embedding: (n, width) float32 or None; device_ms: its own time or None."""

    logits: NDArray[np.float32]
    embedding: NDArray[np.float32] | None
    device_ms: float | None


class Place:
    """Where engines run that share their callers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0

    def enter(self, most: int) -> bool:
        """Count a caller in, unless `most` are in already; return whether it is in."""
        with self._lock:
            if self._running >= most:
                return False
            self._running += 1
            return True

    def leave(self) -> None:
        """Count a caller out."""
        with self._lock:
            self._running -= 1


class Engine(Protocol):
    """One loaded model."""

    name: str

    @property
    def concurrency(self) -> int:
        """How many callers it serves at a time, together with the others at its place."""

    @property
    def place(self) -> Place | None:
        """Where its callers are counted; None: any number at a time."""

    @property
    def max_batch(self) -> int | None:
        """Images of one run; None: as many as memory holds."""

    @property
    def unavailable(self) -> str | None:
        """Why no run can be had now, None if it serves. What is wrong passes by itself while `is_returning`."""

    @property
    def is_returning(self) -> bool:
        """Whether one that is unavailable is being brought back."""

    @property
    def is_stale(self) -> bool:
        """Whether what it was loaded from has been replaced since, so that a reload should load it again."""

    @property
    def returns_within_s(self) -> float:
        """How long bringing it back takes, by the last time; 0 if it never goes."""

    def infer(self, *parts: NDArray[np.float32]) -> Output:
        """Run the model once on all parts: each (n, 3, height, width) float32, normalised as the manifest says.

        The caller owns what is returned. Raises EngineFailedError, or EngineDiedError if the run was lost with the
        process that it ran in; never a stand-in array.
        """

    def close(self) -> None:
        """Free what the model holds; it is not used after."""


HostState = Literal["idle", "starting", "running", "restarting", "failed"]
"""Idle before any model asks for the host; failed if its first start did, and the next model tries again."""


class Backend(Protocol):
    """One way of running models, and what its models share."""

    def open(self, weights: Weights, *, concurrency: int, threads: int) -> Engine:
        """Load a model; raises EngineFailedError.

        concurrency: callers served at a time, fewer if the backend cannot; threads: of one inference.
        """

    def asking(self) -> frozenset[int]:
        """Return the threads (threading.get_ident) that wait for another process, whose supervisor ends their wait."""

    def report(self) -> HostStatus | None:
        """Return the state of the process that the models run in, None if that is the caller's own."""

    def close(self) -> None:
        """Free what the models shared; all of them are closed before."""


def warm_up(engine: Engine, weights: Weights, batches: tuple[int, ...] = (1, 2)) -> None:
    """Run the engine on fixed patterns of each batch size and check what comes back.

    That is its shape, finite numbers, and that an image gets the same answer alone and behind another one.
    Raises EngineFailedError that names what was wrong.
    """
    shape = (1, 3, weights.height_px, weights.width_px)
    pattern = np.linspace(-2.0, 2.0, math.prod(shape), dtype=np.float32).reshape(shape)
    outputs: list[NDArray[np.float32]] = []
    for size in batches:
        if engine.max_batch is not None and size > engine.max_batch:
            continue
        outputs.append(engine.infer(np.concatenate([*[pattern[:, :, ::-1, ::-1]] * (size - 1), pattern])).logits)
        _check(engine, weights, size, outputs[-1])
    numbers = np.concatenate(outputs)
    allowed = SAME_ANSWER * np.ptp(numbers) + ROUNDING * np.abs(numbers).max()
    if any(np.abs(outputs[0][-1] - other[-1]).max() > allowed for other in outputs):
        raise EngineFailedError(
            f"{engine.name} returns a different result for an image if another is in its batch: export it in "
            "evaluation mode, or for batches of 1"
        )


def _check(engine: Engine, weights: Weights, size: int, logits: NDArray[np.float32]) -> None:
    if len(logits) != size:
        raise EngineFailedError(
            f"{engine.name} returns results for {len(logits)} of {size} images: export it for any batch size"
        )
    if logits.shape[1:] != (weights.classes,):
        answered = " x ".join(map(str, logits.shape[1:]))
        repair = "give it a labels file with one line for each number"
        if logits.ndim != 2:
            repair = "export it with one number for each class"
        elif abs(logits.shape[1] - weights.classes) == 1:
            repair += "; models of TensorFlow often have background first: add that name on top, or take it out"
        else:
            repair += "; if they are features, export it with its last layer"
        raise EngineFailedError(
            f"{engine.name} returns {answered} numbers for an image, but its labels file has {weights.classes} "
            f"classes: {repair}"
        )
    if not np.isfinite(logits).all():
        raise EngineFailedError(f"{engine.name} returns numbers that are not finite: export it again")


TRIED = 4  # images together
ROUNDS = 3  # the fastest of which counts
LEAST_GAIN = 0.03  # of the time; what gains less is as well answered one by one, each sooner


def gains_by_batches(engine: Engine, weights: Weights, now: Callable[[], float] = time.perf_counter) -> bool:
    """Return whether a batch takes the engine clearly less time than its images alone."""
    size = min(TRIED, engine.max_batch or TRIED)
    if size == 1:
        return False
    together = np.zeros((size, 3, weights.height_px, weights.width_px), np.float32)
    times_s = []
    try:
        for _ in range(ROUNDS):
            begun_s = now()
            engine.infer(together)
            between_s = now()
            for _ in range(size):
                engine.infer(together[:1])
            times_s.append((between_s - begun_s, now() - between_s))
    except JetselError:
        return False  # who runs it next hears why
    batch_s, alone_s = min(batch_s for batch_s, _ in times_s), min(alone_s for _, alone_s in times_s)
    return batch_s <= (1 - LEAST_GAIN) * alone_s
