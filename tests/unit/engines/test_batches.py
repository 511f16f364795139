"""Whether batches are faster, by a clock that the engine's runs move on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from jetsel.base.weights import Weights
from jetsel.engines import EngineFailedError, OnDemandEngine, Output, gains_by_batches
from jetsel.runtime import ModelQueue
from tests.unit.runtime.driving import TableEngine

WEIGHTS = Weights("m", Path("m.onnx"), "0" * 64, 4, 4, 2)


class Timed(TableEngine):
    """Takes so long for each run, and for each image of it; the first run is slow."""

    def __init__(self, run_ms: float, image_ms: float) -> None:
        super().__init__("m", 1.0)
        self.run_ms, self.image_ms, self.now_s = run_ms, image_ms, 0.0

    def infer(self, *parts: NDArray[np.float32]) -> Output:
        found = super().infer(*parts)
        first_ms = 1000.0 if len(self.batches) == 1 else 0.0
        self.now_s += (first_ms + self.run_ms + self.image_ms * self.batches[-1]) / 1e3
        return found


@pytest.mark.parametrize(
    ("run_ms", "image_ms", "gains"),
    [(1.0, 5.0, True), (0.1, 5.0, False), (0.0, 5.0, False), (-1.0, 5.0, False)],
    ids=["much", "little", "nothing", "loses"],
)
def test_batches_are_used_where_they_save_time_when_tried(run_ms: float, image_ms: float, gains: bool) -> None:
    engine = Timed(run_ms, image_ms)
    assert gains_by_batches(engine, WEIGHTS, lambda: engine.now_s) == gains
    loaded = OnDemandEngine(lambda: engine, lambda: None, try_batches=lambda _: gains)
    assert ModelQueue("m", loaded).batch_limit(8) == (8 if gains else 1)


def test_a_model_for_one_image_or_that_fails_gains_nothing() -> None:
    single, failing = Timed(1.0, 1.0), Timed(1.0, 1.0)
    single.max_batch = 1
    failing.failure = EngineFailedError("no memory for it")
    assert not gains_by_batches(single, WEIGHTS, lambda: single.now_s)
    assert single.batches == [], "there is nothing to try"
    assert not gains_by_batches(failing, WEIGHTS, lambda: failing.now_s)
