"""The policies that read the cheapest model's answer, as generators fed by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from jetsel.base.errors import CalibrationError, EngineDiedError, ModelUnavailableError
from jetsel.policies.multiplexer import CheapestFirst, Multiplexer, MultiplexerKind
from jetsel.policies.multiplexer_edge import Margin, MultiplexerEdge, fit_margin, fit_most, made_for
from jetsel.policies.policy import Evidence, Prediction, Run, Steps
from jetsel.policies.registry import CRITERIA, verify
from jetsel.premodel.readout import STATISTICS, Readout, inputs_of
from tests.unit.policies.animals import animals, multiplexer
from tests.unit.policies.stepping import ended, said

MODELS = ("s", "m", "l")
PHOTO = Evidence(None, "m")
GONE = ModelUnavailableError("gone")


@dataclass(frozen=True, eq=False)
class Fixed(Readout):
    """A readout of the statistics alone that says the same of every image."""

    said: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """It has but one array."""

    def chances(self, inputs: NDArray[np.float32]) -> NDArray[np.float64]:
        """Whatever the answer was."""
        assert inputs.shape[-1] == inputs_of(np.full(2, 0.5, np.float32), None).shape[-1]
        return np.array(self.said)


def knows(*chances: float) -> Multiplexer:
    """A multiplexer that gives the models these chances."""
    return Multiplexer(
        Fixed({"mean": np.zeros(STATISTICS, np.float32)}, chances), np.zeros((1, len(chances)), np.float32)
    )


def edge(*chances: float, **change: Any) -> MultiplexerEdge:
    """s and m are here, and l is at the edge; an image stays for a chance of at most 0.1 less."""
    made = MultiplexerEdge(knows(*chances), MODELS, ("s", "m"), "edge:l", "l", 0.9, Margin(1, 0.1), "always")
    return replace(made, **change)


def after_s(policy: MultiplexerEdge, photo: Evidence = PHOTO) -> tuple[Steps, Any]:
    """The policy once s ran, and what it does then: a Run or a Decision."""
    steps = policy(photo)
    assert next(steps).models == ("s",)
    try:
        return steps, steps.send((said("s", 0.6),))
    except StopIteration as stop:
        return steps, stop.value


@pytest.mark.parametrize(("price", "named"), [(0.0, "l"), (0.02, "m"), (0.11, "s")])
def test_the_cheapest_runs_once_and_the_model_most_worth_its_cost_after_it(price: float, named: str) -> None:
    # 0.5, 0.7, 0.8 at 0, 3, 10 ms: less 0.02 a ms 0.50, 0.64, 0.60; less 0.11 a ms 0.50, 0.37, -0.3.
    costs = np.array([0.0, 3.0, 10.0])
    steps = CheapestFirst("multiplexer", MODELS, knows(0.5, 0.7, 0.8).chances, costs, price)(PHOTO)
    assert next(steps).models == ("s",)
    if named == "s":
        assert ended(steps, said("s", 0.6)).seen.model == "s"
        return
    assert steps.send((said("s", 0.6),)).models == (named,)
    assert ended(steps, said(named, 0.9)).seen.model == named


def test_the_network_reads_probabilities_and_embedding_and_refuses_another_width() -> None:
    mux = Multiplexer.of(multiplexer(np.zeros((4, 3), np.float32), "top1"), "top1", animals())
    assert mux.chances(Prediction("small", np.full(5, 0.2, np.float32), 0.2)).shape == (3,)
    wide = Prediction("small", np.full(5, 0.2, np.float32), 0.2, np.zeros(2, np.float32))
    with pytest.raises(ValueError, match="has 2 numbers, but 0 are expected"):
        mux.chances(wide)
    steps = edge(multiplexer=mux)(PHOTO)
    next(steps)
    assert ended(steps, wide).seen.model == "small"


@pytest.mark.parametrize("held_out", [np.zeros((4, 2), np.float32), np.zeros((3, 3), np.float32)])
def test_a_multiplexer_of_other_models_or_images_is_refused(held_out: NDArray[np.float32]) -> None:
    part = multiplexer(held_out, "top1")
    with pytest.raises(CalibrationError, match="multiplexer: probabilities"):
        verify(msgspec.structs.replace(animals(), parts={"multiplexer": part}))
    without = replace(part, arrays={})
    with pytest.raises(CalibrationError, match="multiplexer: "):
        verify(msgspec.structs.replace(animals(), parts={"multiplexer": without}))
    assert MultiplexerKind().make(multiplexer(np.zeros((4, 3), np.float32), "top1"), animals()).keys() == {"top1"}


def test_only_what_the_device_is_likely_to_get_wrong_is_sent() -> None:
    _, decision = after_s(edge(0.75, 0.5, 0.8))
    assert decision.seen.model == "s", "it ran already, and no second time"
    steps, run = after_s(edge(0.5, 0.6, 0.8))
    assert (run.models, run.until) == (("edge:l",), "deadline")
    assert "a probability of 0.60, edge:l with 0.80" in ended(steps, said("edge:l", 0.9)).because
    steps, run = after_s(edge(0.5, 0.75, 0.8))
    assert run.models == ("m",)
    assert ended(steps, said("m", 0.9)).seen.model == "m"
    _, run = after_s(edge(0.5, 0.85, 0.1, there="xl"))
    assert run.models == ("m",), "of a model that the calibration does not know its accuracy, 0.9, is the chance"


def test_the_chance_here_alone_may_decide() -> None:
    alone = Margin(0, -0.7)  # stays from a chance of 0.7 on, whatever the edge's is
    assert after_s(edge(0.75, 0.5, 0.99, margin=alone))[1].seen.model == "s"
    assert after_s(edge(0.65, 0.5, 0.1, margin=alone))[1].models == ("edge:l",)


def test_an_image_that_may_not_leave_the_device_stays() -> None:
    steps, run = after_s(edge(0.5, 0.6, 0.8), Evidence(None, "m", None, on_device=True))
    assert run.models == ("m",)
    assert "may not leave the device" in ended(steps, said("m", 0.6)).because


def test_what_fails_at_the_edge_or_here_is_answered_by_another_model() -> None:
    steps, _ = after_s(edge(0.5, 0.6, 0.8))
    assert steps.throw(EngineDiedError("the link is cut")).models == ("m",)
    assert "edge:l did not answer" in ended(steps, said("m", 0.6)).because
    steps = edge(0.5, 0.6, 0.8)(PHOTO)
    next(steps)
    assert steps.throw(GONE).models == ("m",)
    assert ended(steps, said("m", 0.6)).seen.model == "m"


@pytest.mark.parametrize(("confidence", "goes_on"), [(0.95, False), (0.7, True)])
def test_if_an_edge_may_be_asked_in_doubt_alone_a_model_here_is_asked_before(confidence: float, goes_on: bool) -> None:
    steps, run = after_s(edge(0.5, 0.6, 0.8, allow="low-confidence"))
    assert run.models == ("m",)
    if not goes_on:
        assert ended(steps, said("m", confidence)).seen.model == "m"
        return
    sent = steps.send((said("m", confidence),))
    assert isinstance(sent, Run)
    assert sent.models == ("edge:l",)
    with pytest.raises(StopIteration) as stop:
        steps.throw(EngineDiedError("the link is cut"))
    assert stop.value.value.seen.model == "m"


@pytest.mark.parametrize(
    ("behind", "here", "there", "most"),
    [
        # Staying gains 0, -1 and +1 together, 0 and -1: after four as many are right as at the edge.
        ([-0.2, 0.1, 0.1, 0.3, 0.5], [1, 0, 1, 0, 0], [1, 1, 0, 0, 1], 0.3),
        ([0.3, 0.1], [1, 1], [1, 0], 0.3),  # in whatever order they come
        ([0.1, 0.3], [0, 0], [1, 1], -2.0),
    ],
)
def test_as_little_is_sent_as_keeps_the_accuracy_of_the_edge(
    behind: Sequence[float], here: Sequence[int], there: Sequence[int], most: float
) -> None:
    assert fit_most(np.array(behind), np.array(here, bool), np.array(there, bool)) == most


@pytest.mark.parametrize("weight", [0, 1])
def test_folds_choose_whether_the_edge_s_chance_counts(weight: int) -> None:
    """One of the two says exactly where the model here is right and the edge is not worse; the other says nothing."""
    draw = np.random.default_rng(1)
    here, noise = draw.random(400) < 0.5, draw.random(400)
    good = np.where(here, 0.9, 0.1) + 0.01 * noise
    local, there = (good, noise) if weight == 0 else (noise, noise + 1 - good)
    margin, stays = fit_margin(local, there, here, np.ones(400, bool))
    assert margin.weight == weight
    assert np.array_equal(margin.stays(local, there), here)
    assert (stays == here).mean() > 0.98


def test_the_margin_is_fitted_for_what_is_here_and_at_the_edge() -> None:
    chances = np.array([[0.9, 0.1, 0.95], [0.6, 0.1, 0.9], [0.7, 0.1, 0.8], [0.2, 0.1, 0.3]], np.float32)
    calibration = msgspec.structs.replace(animals(), parts={"multiplexer": multiplexer(chances, *CRITERIA)})
    # Under top1 small is right on the first two and large, too; on the others neither is: nothing need be sent.
    found = made_for("top1", calibration, ("small", "middle"), "edge:large", "large", 0.9, "always")
    assert found is not None
    assert found.here == ("small", "middle")
    assert found.margin.stays(chances[:, 0].astype(float), chances[:, 2].astype(float)).all()
    assert made_for("top1", calibration, ("middle",), "edge:large", "large", 0.9, "always") is None
    assert made_for("top1", animals(), ("small",), "edge:large", "large", 0.9, "always") is None
    unknown = made_for("top1", calibration, ("small", "large"), "edge:xl", "xl", 0.9, "always")
    assert unknown is not None
    assert (unknown.here, unknown.margin) == (("small", "large"), Margin(1, 0.0))
