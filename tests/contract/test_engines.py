"""What every backend must do: one suite for each, on a model worked out by hand and on one of the starter family."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from jetsel.base.errors import ConfigError, JetselError
from jetsel.engines import BACKENDS, Engine
from jetsel.zoo import STARTER
from tests.contract.opening import MAX_BATCH, Models, Subject, photographs, weights_of
from tests.contract.tiny import CLASSES, HEIGHT_PX, PIXELS, WIDTH_PX, matrix_model, mean_model
from tests.processes import ended

WEIGHTS = np.random.default_rng(0).normal(size=(PIXELS, CLASSES)).astype(np.float32)

Open = Callable[..., Engine]


@pytest.fixture
def open_model(models: Models) -> Iterator[Open]:
    """Open models that are closed with the test."""

    def begin(path: Path, concurrency: int = 1, threads: int = 1) -> Engine:
        return models.open(weights_of(path), concurrency=concurrency, threads=threads)

    with ended(begin, lambda engine: engine.close()) as begun:
        yield begun


@pytest.fixture
def tiny(tmp_path: Path, open_model: Open) -> Engine:
    return open_model(tiny_file(tmp_path), concurrency=4)


@pytest.fixture
def starter(open_model: Open) -> Engine:
    return open_model(STARTER / "l.onnx", concurrency=2)


def tiny_file(folder: Path, **changes: object) -> Path:
    path = folder / "tiny.onnx"
    path.write_bytes(matrix_model(WEIGHTS, **changes))  # type: ignore[arg-type]
    return path


def images(count: int, seed: int = 0) -> NDArray[np.float32]:
    """Inputs of the tiny model."""
    return np.random.default_rng(seed).normal(size=(count, 3, HEIGHT_PX, WIDTH_PX)).astype(np.float32)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_logits_and_embedding_are_those_worked_out_by_hand(subject: Subject, tiny: Engine, count: int) -> None:
    batch = images(count)
    output = tiny.infer(batch)
    flat = batch.reshape(count, PIXELS)
    assert output.logits == pytest.approx(flat @ WEIGHTS, abs=subject.tolerance)
    assert output.embedding == pytest.approx(flat, rel=subject.rounding, abs=0)
    assert output.logits.dtype == output.embedding.dtype == np.float32
    assert output.device_ms is None or output.device_ms >= 0


def test_a_part_of_a_larger_array_is_read_as_it_lies(subject: Subject, tiny: Engine) -> None:
    batch = images(6)[::2]
    assert not batch.flags.c_contiguous
    expected = batch.reshape(3, PIXELS) @ WEIGHTS
    assert tiny.infer(batch).logits == pytest.approx(expected, abs=subject.tolerance)


def test_the_caller_owns_what_is_returned(subject: Subject, tiny: Engine) -> None:
    first = tiny.infer(images(2, seed=1))
    kept = first.logits.copy(), first.embedding.copy()
    second = tiny.infer(images(2, seed=2))
    assert not np.array_equal(second.logits, kept[0])
    assert np.array_equal(first.logits, kept[0])
    assert np.array_equal(first.embedding, kept[1])
    first.logits[:] = 0
    assert tiny.infer(images(2, seed=1)).logits == pytest.approx(kept[0], abs=subject.tolerance)


def test_several_threads_get_what_one_gets(subject: Subject, starter: Engine) -> None:
    batches = [photographs(1 + seed % 3, seed) for seed in range(12)]
    expected = [starter.infer(batch).logits for batch in batches]
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda batch: starter.infer(batch).logits, batches)
    for logits, alone in zip(found, expected, strict=True):
        assert logits == pytest.approx(alone, abs=subject.tolerance)


def test_two_models_at_once_do_not_mix(subject: Subject, tmp_path: Path, open_model: Open) -> None:
    first, second = tmp_path / "first.onnx", tmp_path / "second.onnx"
    first.write_bytes(matrix_model(WEIGHTS))
    second.write_bytes(matrix_model(-WEIGHTS))
    one, other = open_model(first), open_model(second)
    batch = images(3)
    expected = batch.reshape(3, PIXELS) @ WEIGHTS
    assert one.infer(batch).logits == pytest.approx(expected, abs=subject.tolerance)
    assert other.infer(batch).logits == pytest.approx(-expected, abs=subject.tolerance)
    assert (one.name, other.name) == ("first", "second")


def test_models_of_one_file_take_their_own_sizes(subject: Subject, tmp_path: Path, models: Models) -> None:
    path = tmp_path / "any.onnx"
    path.write_bytes(mean_model(WEIGHTS[:3]))
    file = weights_of(path)
    for side_px in (4, 6):
        engine = models.open(replace(file, name=f"any-{side_px}", height_px=side_px, width_px=side_px))
        batch = np.random.default_rng(side_px).normal(size=(2, 3, side_px, side_px)).astype(np.float32)
        found = engine.infer(batch).logits
        assert found == pytest.approx(batch.mean(axis=(2, 3)) @ WEIGHTS[:3], abs=subject.tolerance)
        engine.close()


def test_a_model_without_an_embedding_has_none(tmp_path: Path, open_model: Open) -> None:
    engine = open_model(tiny_file(tmp_path, embedding=False))
    output = engine.infer(images(1))
    assert output.embedding is None
    assert output.logits.shape == (1, CLASSES)


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ((1, 3, HEIGHT_PX, WIDTH_PX + 1), np.float32),
        ((1, 1, HEIGHT_PX, WIDTH_PX), np.float32),
        ((3, HEIGHT_PX, WIDTH_PX), np.float32),
        ((1, 3, HEIGHT_PX, WIDTH_PX), np.float64),
    ],
)
def test_a_batch_of_another_kind_is_an_error_of_ours_and_the_next_is_served(
    tiny: Engine, shape: tuple[int, ...], kind: type[np.float32]
) -> None:
    with pytest.raises(JetselError, match="tiny: "):
        tiny.infer(np.zeros(shape, kind))
    assert tiny.infer(images(1)).logits.shape == (1, CLASSES)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda _: b"", id="empty"),
        pytest.param(lambda _: b"no model at all", id="another kind of file"),
        pytest.param(lambda whole: whole[:-1], id="the last byte lost"),
        pytest.param(lambda whole: whole[: len(whole) // 2], id="half"),
        pytest.param(lambda _: matrix_model(WEIGHTS, logits_name="scores"), id="no logits"),
    ],
)
def test_a_file_that_is_no_whole_model_is_refused_by_the_model_s_name(
    tmp_path: Path, open_model: Open, damage: Callable[[bytes], bytes]
) -> None:
    path = tiny_file(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(JetselError, match=r"^tiny: ") as caught:
        open_model(path)
    assert len(str(caught.value).splitlines()) == 1
    assert caught.value.code == "model-unavailable"


def test_closing_twice_is_closing_once_and_closed_it_answers_nothing(tmp_path: Path, open_model: Open) -> None:
    engine = open_model(tiny_file(tmp_path))
    kept = engine.infer(images(1)).logits
    before = kept.copy()
    engine.close()
    engine.close()
    with pytest.raises(JetselError, match="tiny: it is closed"):
        engine.infer(images(1))
    assert np.array_equal(kept, before), "what was returned outlives the model"


def test_closing_lets_a_run_that_is_under_way_end(subject: Subject, open_model: Open) -> None:
    engine = open_model(STARTER / "l.onnx")
    batch = photographs(MAX_BATCH)
    expected = engine.infer(batch).logits
    outcomes: list[NDArray[np.float32] | JetselError] = []
    begun = threading.Event()

    def once() -> NDArray[np.float32] | JetselError:
        try:
            return engine.infer(batch).logits
        except JetselError as error:
            return error

    def infer() -> None:
        begun.set()
        for _ in range(5):
            outcomes.append(once())  # noqa: PERF401  # what was appended before a defect must stay

    thread = threading.Thread(target=infer)
    thread.start()
    begun.wait()
    engine.close()
    thread.join()
    assert len(outcomes) == 5, "every run ended, with an answer or an error of ours"
    for outcome in outcomes:
        assert isinstance(outcome, JetselError) or np.allclose(outcome, expected, atol=subject.tolerance)


def test_parts_of_several_callers_run_as_one_batch(subject: Subject, tiny: Engine) -> None:
    parts = [images(1, seed=1), images(2, seed=2), images(1, seed=3)]
    output = tiny.infer(*parts)
    expected = np.concatenate(parts).reshape(4, PIXELS) @ WEIGHTS
    assert output.logits == pytest.approx(expected, abs=subject.tolerance)


def test_a_batch_that_is_fixed_at_one_is_told(tmp_path: Path, open_model: Open) -> None:
    engine = open_model(tiny_file(tmp_path, batch=1))
    assert engine.max_batch == 1
    assert engine.infer(images(1)).logits.shape == (1, CLASSES)


def test_it_serves_from_when_it_is_open_and_says_how_many(subject: Subject, tiny: Engine, starter: Engine) -> None:
    assert (tiny.concurrency, starter.concurrency) == subject.callers
    assert tiny.unavailable is None
    assert not tiny.is_restarting
    assert tiny.max_batch == subject.max_batch


def test_an_unknown_backend_is_refused_with_those_that_are_known(tmp_path: Path, models: Models) -> None:
    with pytest.raises(ConfigError, match=f"'abacus' is not a backend; known here: {', '.join(BACKENDS)}"):
        models.backends.open("abacus", weights_of(tiny_file(tmp_path)), concurrency=1, threads=1)
