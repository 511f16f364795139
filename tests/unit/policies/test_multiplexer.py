"""The multiplexer as a policy, what a calibration stores of it, and the network that reads one model's answer."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from calibration.papers.area import area_under_curve
from jetsel.base.errors import CalibrationError, ModelUnavailableError
from jetsel.policies.multiplexer import (
    FOLDS,
    STATISTICS,
    CheapestFirst,
    MultiplexerKind,
    Readout,
    fit_readout,
    network_inputs,
)
from jetsel.policies.policy import Evidence, Prediction
from jetsel.policies.registry import KIND, USUAL, catalogue, kinds_with, no_such
from tests.unit.policies.animals import animals, multiplexer
from tests.unit.policies.stepping import ended, said

PHOTO = Evidence(None, "m")


def test_the_network_reads_probabilities_and_embedding_and_refuses_another_width() -> None:
    policy = MultiplexerKind().make(multiplexer(3), animals())["multiplexer"]
    assert isinstance(policy, CheapestFirst)
    assert policy.chances(Prediction("small", np.full(5, 0.2, np.float32), 0.2)).shape == (3,)
    wide = Prediction("small", np.full(5, 0.2, np.float32), 0.2, np.zeros(2, np.float32))
    with pytest.raises(ValueError, match="has 2 numbers, but 0 are expected"):
        policy.chances(wide)
    steps = policy(PHOTO)
    next(steps)
    assert ended(steps, wide).prediction.model == "small"


def test_a_multiplexer_of_other_models_or_without_its_arrays_is_refused() -> None:
    with pytest.raises(CalibrationError, match="multiplexer: it predicts for 2 models, and the calibration has 3"):
        catalogue(["small"], msgspec.structs.replace(animals(), parts={"multiplexer": multiplexer(2)}))
    without = replace(multiplexer(3), arrays={})
    with pytest.raises(CalibrationError, match="multiplexer: "):
        catalogue(["small"], msgspec.structs.replace(animals(), parts={"multiplexer": without}))


def test_it_is_fitted_only_on_request_and_whoever_names_it_learns_how() -> None:
    assert "multiplexer" not in {kind.name for kind in USUAL}
    assert {kind.name for kind in kinds_with(["multiplexer"])} == KIND.keys()
    assert "jetsel calibrate IMAGES --with multiplexer" in no_such("multiplexer", ["cascade", "single:s"])


def test_the_statistics_of_an_answer_come_before_its_embedding() -> None:
    found = network_inputs(np.array([0.5, 0.25, 0.125, 0.125], np.float32), np.array([7.0, 8.0], np.float16))
    entropy = 0.5 * np.log(2) + 0.25 * np.log(4) + 0.25 * np.log(8)
    assert found == pytest.approx([0.5, 0.25, np.log(2), 0.0, entropy, 1.0, 7.0, 8.0])
    assert found.dtype == np.float32


def test_an_answer_that_is_sure_has_finite_statistics() -> None:
    assert np.isfinite(network_inputs(np.array([1.0, 0.0], np.float32), None)).all()


def drawn(n: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Two models: the sign of a product of two numbers of the embedding says where the second is right, half the time.

    No line through the inputs tells them apart. The first is right where the answer is sure.
    """
    draw = np.random.default_rng(seed)
    first = draw.uniform(0.5, 1.0, n).astype(np.float32)
    embedding = draw.normal(size=(n, 4)).astype(np.float32)
    right = np.stack([first > 0.75, embedding[:, 0] * embedding[:, 1] > 0], axis=1)
    return network_inputs(np.stack([first, 1 - first], axis=1), embedding), right


def test_it_learns_from_the_answer_and_what_no_line_tells_apart_from_the_embedding() -> None:
    readout, held_out = fit_readout(*drawn(2000, 1))
    inputs, right = drawn(1000, 2)
    chances = readout.chances(inputs)
    areas = [area_under_curve(right[:, place], chances[:, place]) for place in range(2)]
    assert min(area or 0.0 for area in areas) > 0.9
    assert held_out.shape == (2000, 2)
    assert np.array_equal(readout.chances(inputs[3]), chances[3]) or readout.chances(inputs[3]) == pytest.approx(
        chances[3]
    )


def test_of_noise_it_learns_nothing_but_how_often_each_model_is_right() -> None:
    draw = np.random.default_rng(3)
    inputs = draw.normal(size=(600, STATISTICS + 200)).astype(np.float32)
    right = draw.random((600, 2)) < [0.3, 0.8]
    _, held_out = fit_readout(inputs, right)
    assert held_out.mean(axis=0) == pytest.approx([0.3, 0.8], abs=0.06)
    assert held_out.std(axis=0).max() < 0.1


def test_images_of_one_group_are_never_held_out_apart() -> None:
    """Every image stands there twice, and whether a model is right is a coin: only a copy could tell it."""
    draw = np.random.default_rng(4)
    inputs = np.repeat(draw.normal(size=(150, STATISTICS + 60)).astype(np.float32), 2, axis=0)
    right = np.repeat(draw.random((150, 1)) < 0.5, 2, axis=0)
    _, apart = fit_readout(inputs, right, np.repeat(np.arange(150), 2))
    area = area_under_curve(right[:, 0], apart[:, 0])
    assert area is not None
    assert area < 0.65


def test_a_few_images_are_enough_to_fit_and_arrays_that_do_not_fit_are_refused() -> None:
    readout, held_out = fit_readout(*drawn(FOLDS - 1, 6))
    assert np.isfinite(held_out).all()
    with pytest.raises(ValueError, match="do not match the width"):
        Readout({**readout.weights, "mean": np.zeros(3, np.float32)})


WITH_FALLBACK = Evidence(features=None, fallback="l")
GONE = ModelUnavailableError("gone")


def unsure(embedding: float | None = None) -> Prediction:
    """What the cheapest model says."""
    features = None if embedding is None else np.array([embedding], np.float32)
    return msgspec.structs.replace(said("s", 0.5), embedding=features)


def cheapest_first(price: float) -> CheapestFirst:
    def chances(seen: Prediction) -> NDArray[np.float64]:
        if seen.embedding is None:
            raise ValueError("it gave no embedding")
        return np.array([float(seen.embedding[0]), 0.7, 0.9])

    return CheapestFirst("multiplexer", ("s", "m", "l"), chances, np.array([0.0, 2.0, 10.0]), price)


@pytest.mark.parametrize(
    ("price", "seen", "then"),
    [
        (0.0, 0.6, "l"),  # time costs nothing: 0.9 is the best chance
        (0.0, 0.95, None),
        (0.04, 0.6, "m"),  # 0.6, 0.7 - 0.08, 0.9 - 0.4
        (0.06, 0.6, None),  # 0.6, 0.58, 0.3
    ],
)
def test_the_cheapest_goes_on_to_what_is_worth_its_time(price: float, seen: float, then: str | None) -> None:
    steps = cheapest_first(price)(WITH_FALLBACK)
    assert next(steps).models == ("s",)
    first = unsure(seen)
    if then is None:
        assert ended(steps, first).prediction.model == "s"
    else:
        assert steps.send((first,)).models == (then,)
        assert ended(steps, said(then, 1.0)).prediction.model == then


def test_an_embedding_that_is_missing_or_leads_nowhere_leaves_the_cheapest_model_s_answer() -> None:
    steps = cheapest_first(0.0)(WITH_FALLBACK)
    next(steps)
    assert "no embedding" in ended(steps, unsure()).because
    steps = cheapest_first(0.0)(WITH_FALLBACK)
    next(steps)
    steps.send((unsure(0.1),))
    with pytest.raises(StopIteration) as stop:
        steps.throw(GONE)
    assert stop.value.value.prediction.model == "s"
    steps = cheapest_first(0.0)(WITH_FALLBACK)
    next(steps)
    assert steps.throw(GONE).models == ("l",), "where the cheapest is unavailable, the best stands in"
    assert ended(steps, said("l", 0.5)).prediction.model == "l"
