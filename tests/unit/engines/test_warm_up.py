"""The check before a model serves: the shape of what it answers, and that its numbers are finite."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from jetsel.base.weights import Weights
from jetsel.engines import EngineFailedError, OnDemandEngine, Output, gains_by_batches, warm_up
from jetsel.runtime import ModelQueue
from tests.unit.runtime.driving import TableEngine


class Answering(TableEngine):
    """An engine that answers what it is given, and keeps what it was asked."""

    def __init__(self, classes: int, value: float = 0.0, rows: int | None = None, max_batch: int | None = None) -> None:
        super().__init__("m", value)
        self.max_batch = max_batch
        self._classes, self._rows = classes, rows
        self.asked: list[NDArray[np.float32]] = []

    def infer(self, *parts: NDArray[np.float32]) -> Output:
        self.asked += parts
        rows = sum(map(len, parts)) if self._rows is None else self._rows
        return Output(np.full((rows, self._classes), self.margin, np.float32), None, None)


def weights(height_px: int, width_px: int, classes: int) -> Weights:
    return Weights("m", Path("m.onnx"), "0" * 64, height_px, width_px, classes)


@pytest.mark.parametrize(("max_batch", "sizes"), [(None, [1, 2]), (1, [1])])
def test_as_many_images_as_it_takes_are_tried_with_numbers_of_normalised_pixels(
    max_batch: int | None, sizes: list[int]
) -> None:
    engine = Answering(10, max_batch=max_batch)
    warm_up(engine, weights(4, 6, 10))
    assert [batch.shape for batch in engine.asked] == [(size, 3, 4, 6) for size in sizes]
    for batch in engine.asked:
        assert batch.dtype == np.float32
        assert (batch.min(), batch.max()) == (-2.0, 2.0)


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        (Answering(8), r"m returns 8 numbers .* 10 .*each number; if they are features"),
        (Answering(9), "often have background first"),
        (Answering(11), "often have background first"),
        (Answering(10, rows=1), "m returns results for 1 of 2 images"),
        (Answering(10, np.nan), "not finite"),
        (Answering(10, -np.inf), "not finite"),
    ],
)
def test_what_is_no_answer_to_the_images_is_told(engine: Answering, words: str) -> None:
    with pytest.raises(EngineFailedError, match=words):
        warm_up(engine, weights(4, 4, 10))


class Mixing(Answering):
    """Answers pixels, less a share of their mean over the batch."""

    def __init__(self, share: float) -> None:
        super().__init__(10)
        self._share = share

    def infer(self, *parts: NDArray[np.float32]) -> Output:
        (batch,) = parts
        numbers = batch.reshape(len(batch), -1)[:, :10]
        return Output(numbers - self._share * numbers.mean(axis=0), None, None)


def test_an_answer_that_depends_on_the_batch_is_rejected_and_rounding_is_not() -> None:
    warm_up(Mixing(0.01), weights(4, 4, 10))
    with pytest.raises(EngineFailedError, match="another is in its batch"):
        warm_up(Mixing(1.0), weights(4, 4, 10))


WEIGHTS = weights(4, 4, 2)


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
