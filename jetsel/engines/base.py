"""What every backend offers: one loaded model that turns a batch into logits, or fails with a reason."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from jetsel.errors import JetselError


class EngineFailedError(JetselError):
    """A model that does not load, or a run that gave no usable output. Never a stand-in array."""

    code = "model-unavailable"


class Output(NamedTuple):
    """One run. logits: (n, classes) float32; embedding: (n, width) float32 or None; device_ms: its own time or None."""

    logits: NDArray[np.float32]
    embedding: NDArray[np.float32] | None
    device_ms: float | None


class Engine(Protocol):
    """One loaded model."""

    name: str
    concurrency: int  # how many callers it serves at a time

    def infer(self, batch: NDArray[np.float32]) -> Output:
        """Run the model on batch: (n, 3, height, width) float32, normalised as the manifest says.

        The caller owns what is returned. Raises EngineFailedError; never a stand-in array.
        """

    def close(self) -> None:
        """Free what the model holds; it is not used after."""


class EngineFactory(Protocol):
    """What a backend's import string names."""

    def __call__(self, name: str, path: Path, *, concurrency: int, threads: int) -> Engine:
        """Load the model; raises EngineFailedError."""


def warm_up(engine: Engine, height_px: int, width_px: int, classes: int, batches: tuple[int, ...] = (1, 2)) -> None:
    """Run the engine on a fixed pattern of each batch size and check what comes back: its shape, and finite numbers.

    Raises EngineFailedError that names what was wrong.
    """
    for size in batches:
        pattern = np.linspace(-2.0, 2.0, size * 3 * height_px * width_px, dtype=np.float32)
        logits = engine.infer(pattern.reshape(size, 3, height_px, width_px)).logits
        if logits.shape != (size, classes):
            raise EngineFailedError(
                f"{engine.name} answers {logits.shape[1:]} numbers for each of {logits.shape[0]} images where "
                f"{classes} for each of {size} were due: its weights and its labels file do not belong together"
            )
        if not np.isfinite(logits).all():
            raise EngineFailedError(f"{engine.name} answers numbers that are not finite: export it again")
