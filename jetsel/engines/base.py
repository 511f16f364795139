"""The interface of backends and engines, and the checks of an engine after its load."""

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
"""Tolerance as a share of the logits' range; 8-bit models that scale a whole batch differ by 0.005, others by less."""
ROUNDING = 1e-3  # as a share of the largest logit, in case all are alike


class EngineFailedError(JetselError):
    """A model cannot be loaded, or a run returned no usable output. No output is ever made up instead."""

    code = "model-unavailable"


class Output(NamedTuple):
    """Output of a run on n images."""

    logits: NDArray[np.float32]  # (n, classes)
    embedding: NDArray[np.float32] | None  # (n, width); None if the model has none
    device_ms: float | None  # by the device's own clock; None if it has none


class CallerLimiter:
    """Counts the callers of several engines together, so that a shared engine host gets no more than it can serve."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0

    def enter(self, limit: int) -> bool:
        """Admit a caller if fewer than `limit` are admitted; return whether it is. An admitted caller must `leave`."""
        with self._lock:
            if self._running >= limit:
                return False
            self._running += 1
            return True

    def leave(self) -> None:
        """Count out a caller that `enter` admitted."""
        with self._lock:
            self._running -= 1


class Engine(Protocol):
    """One loaded model."""

    name: str

    @property
    def concurrency(self) -> int:
        """Most callers at a time, for CallerLimiter.enter; all engines that share the caller_limiter count together."""

    @property
    def caller_limiter(self) -> CallerLimiter | None:
        """Counter that must admit a caller before each `infer`; None if any number of callers may run at a time."""

    @property
    def max_batch(self) -> int | None:
        """Largest number of images in one run; None if only memory limits it."""

    @property
    def unavailable(self) -> str | None:
        """Why the engine cannot run now; None if it can. While `is_restarting`, this ends by itself."""

    @property
    def is_restarting(self) -> bool:
        """Whether an unavailable engine is being restarted."""

    @property
    def is_stale(self) -> bool:
        """Whether the model's file was replaced after its load, so that a reload should load it again."""

    @property
    def restart_s(self) -> float:
        """Seconds that the last restart took; 0 if the engine never restarts."""

    def infer(self, *parts: NDArray[np.float32]) -> Output:
        """Run the model once on all parts: each (n, 3, height, width) float32, normalised as the manifest says.

        The caller owns the output. Raises EngineFailedError, or EngineDiedError if the process that ran it ended.
        """

    def close(self) -> None:
        """Free the model's memory; the engine must not be used afterwards."""


HostState = Literal["idle", "starting", "running", "restarting", "failed"]
"""idle: no model has needed the host yet. failed: its first start failed; the next load of a model retries."""


class Backend(Protocol):
    """One way to run models, and the resources that its models share."""

    def open(self, weights: Weights, *, concurrency: int, threads: int) -> Engine:
        """Load a model; raises EngineFailedError.

        concurrency: callers to serve at a time; the engine may serve fewer. threads: processor threads of one run.
        """

    def waiting_threads(self) -> frozenset[int]:
        """Return the threads (threading.get_ident) that wait for another process, whose supervisor ends their wait."""

    def report(self) -> HostStatus | None:
        """Return the state of the engine host, None if the models run in this process."""

    def close(self) -> None:
        """Free shared resources, after all engines have been closed."""


def warm_up(engine: Engine, weights: Weights, batches: tuple[int, ...] = (1, 2)) -> None:
    """Run a new engine on a fixed pattern in each batch size, so that a model that cannot be served is found early.

    Raises EngineFailedError, with the repair, if an output has the wrong shape or numbers that are not finite, or if an
    image gets another result in a batch than alone.
    """
    shape = (1, 3, weights.height_px, weights.width_px)
    pattern = np.linspace(-2.0, 2.0, math.prod(shape), dtype=np.float32).reshape(shape)
    outputs: list[NDArray[np.float32]] = []
    for size in batches:
        if engine.max_batch is not None and size > engine.max_batch:
            continue
        outputs.append(engine.infer(np.concatenate([*[pattern[:, :, ::-1, ::-1]] * (size - 1), pattern])).logits)
        _check_logits(engine, weights, size, outputs[-1])
    logits = np.concatenate(outputs)
    allowed = SAME_ANSWER * np.ptp(logits) + ROUNDING * np.abs(logits).max()
    if any(np.abs(outputs[0][-1] - other[-1]).max() > allowed for other in outputs):
        raise EngineFailedError(
            f"{engine.name} returns a different result for an image if another is in its batch: export it in "
            "evaluation mode, or for batches of 1"
        )


def _check_logits(engine: Engine, weights: Weights, size: int, logits: NDArray[np.float32]) -> None:
    """Raise EngineFailedError, with the repair, unless logits are finite and of shape (size, weights.classes)."""
    if len(logits) != size:
        message = f"{engine.name} returns results for {len(logits)} of {size} images: export it for any batch size"
        raise EngineFailedError(message)
    if logits.shape[1:] != (weights.classes,):
        shape_text = " x ".join(map(str, logits.shape[1:]))
        repair = "give it a labels file with one line for each number"
        if logits.ndim != 2:
            repair = "export it with one number for each class"
        elif abs(logits.shape[1] - weights.classes) == 1:
            repair += "; models of TensorFlow often have background first: add that name on top, or take it out"
        else:
            repair += "; if they are features, export it with its last layer"
        raise EngineFailedError(
            f"{engine.name} returns {shape_text} numbers for an image, but its labels file has {weights.classes} "
            f"classes: {repair}"
        )
    if not np.isfinite(logits).all():
        raise EngineFailedError(f"{engine.name} returns numbers that are not finite: export it again")


TRIAL_BATCH = 4  # images
ROUNDS = 3  # measurements, of which the fastest counts
LEAST_GAIN = 0.03  # share of the time; below it, single runs are as good, and each ends sooner


def gains_by_batches(engine: Engine, weights: Weights, now: Callable[[], float] = time.perf_counter) -> bool:
    """Measure whether a batch takes clearly less time than its images one by one; False also if a run fails."""
    size = min(TRIAL_BATCH, engine.max_batch or TRIAL_BATCH)
    if size == 1:
        return False
    batch = np.zeros((size, 3, weights.height_px, weights.width_px), np.float32)
    times_s = []
    try:
        for _ in range(ROUNDS):
            start_s = now()
            engine.infer(batch)
            batch_end_s = now()
            for _ in range(size):
                engine.infer(batch[:1])
            times_s.append((batch_end_s - start_s, now() - batch_end_s))
    except JetselError:
        return False  # the next run raises the error
    batch_s, alone_s = min(batch_s for batch_s, _ in times_s), min(alone_s for _, alone_s in times_s)
    return batch_s <= (1 - LEAST_GAIN) * alone_s
