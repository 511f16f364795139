"""The policies that ask a multiplexer first, as generators fed by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from jetsel.errors import EngineDiedError, ModelUnavailableError
from jetsel.policies.cascade import Cascade, rungs_of
from jetsel.policies.catalogue import CRITERIA
from jetsel.policies.kind import Part
from jetsel.policies.multiplexer import MultiplexerPolicy
from jetsel.policies.multiplexer_cascade import MultiplexerCascade
from jetsel.policies.multiplexer_edge import MultiplexerEdge, fit_margin, made_for
from jetsel.policies.multiplexer_ensemble import MultiplexerEnsemble
from jetsel.policies.multiplexing import Multiplexer, chances_of
from jetsel.policies.policy import Evidence, Policy, Prediction, Run, Steps
from tests.unit.policies.animals import MULTIPLEXER, animals
from tests.unit.policies.stepping import ended, said

MODELS = ("s", "m", "l")
MUX = Multiplexer("mux", MODELS, np.array([1.0, 3.0, 10.0]), "right")
PHOTO = Evidence(None, "m")
GONE = ModelUnavailableError("gone")


def says(*chances: float) -> Prediction:
    """What a multiplexer says that gives its models these chances."""
    odds = np.array([*(chance / (1 - chance) for chance in chances), 1.0], np.float32)
    return Prediction("mux", odds / odds.sum(), float(odds.max() / odds.sum()))


def asked(policy: Policy, *chances: float, photo: Evidence = PHOTO) -> tuple[Steps, Run]:
    """The policy after the multiplexer has said this, and what it asks for then."""
    steps = policy(photo)
    assert next(steps).models == ("mux",)
    return steps, steps.send((says(*chances),))


def without(policy: Policy) -> tuple[Steps, Run]:
    """The policy where the multiplexer is unavailable."""
    steps = policy(PHOTO)
    next(steps)
    return steps, steps.throw(GONE)


def test_a_softmax_with_a_last_logit_of_0_keeps_what_each_logit_is() -> None:
    # Logits ln 3, 0 and 0: sigmoids of 0.75 and 0.5; among the first two alone, weights of 0.75 and 0.25.
    softmax = np.array([[0.6, 0.2, 0.2]], np.float32)
    assert chances_of(softmax, "right") == pytest.approx(np.array([[0.75, 0.5]]))
    assert chances_of(softmax, "ensemble") == pytest.approx(np.array([[0.75, 0.25]]))
    assert chances_of(np.array([1.0, 0.0, 0.0], np.float32), "right").tolist() == [1, 0], "too small for float32"


@pytest.mark.parametrize(("price", "named"), [(0.0, "l"), (0.02, "m"), (0.11, "s")])
def test_the_model_is_run_whose_chance_is_most_worth_its_cost(price: float, named: str) -> None:
    # 0.5, 0.7, 0.8 at 1, 3, 10 ms: less 0.02 a ms 0.48, 0.64, 0.60; less 0.11 a ms 0.39, 0.37, -0.3.
    steps, run = asked(MultiplexerPolicy("multiplexer", MUX, price), 0.5, 0.7, 0.8)
    assert run.models == (named,)
    assert f"mux gives {named} a chance of" in run.because
    assert ended(steps, said(named, 0.9)).seen.model == named


def test_where_the_multiplexer_or_the_named_model_is_unavailable_the_fallback_answers() -> None:
    policy = MultiplexerPolicy("multiplexer", MUX, 0.0)
    steps, run = without(policy)
    assert (run.models, run.because) == (("m",), "mux is unavailable; m answers without it")
    assert steps.throw(GONE).models == ("l",), "the most expensive, where the fallback is away too"
    steps, run = asked(policy, 0.5, 0.7, 0.8)
    assert steps.throw(GONE).models == ("m",)
    assert "l is unavailable; m is the fallback" in ended(steps, said("m", 0.9)).because
    steps = policy(Evidence(None, None))
    next(steps)
    assert steps.throw(GONE).models == ("l",)


def test_all_above_the_threshold_are_averaged_as_they_are() -> None:
    policy = MultiplexerEnsemble("multiplexer-ensemble", MUX, 0.4, "top1")
    steps, run = asked(policy, 0.5, 0.3, 0.8)
    assert run.models == ("s",)
    assert steps.send((said("s", 0.8),)).models == ("l",)
    decision = ended(steps, said("l", 0.4))
    assert decision.seen.model == "l"
    assert decision.seen.probabilities == pytest.approx([0.6, 0.4])
    assert decision.seen.confidence == pytest.approx(0.6)
    assert decision.because == "mux weighs s and l above 0.40"


def test_where_none_is_above_the_threshold_the_one_of_most_weight_answers() -> None:
    steps, run = asked(MultiplexerEnsemble("multiplexer-ensemble", MUX, 0.9, "top1"), 0.5, 0.8, 0.8)
    assert run.models == ("m",), "of equals the first"
    decision = ended(steps, said("m", 0.7))
    assert decision.seen.probabilities == pytest.approx([0.7, 0.3])
    assert "m most, and none above 0.90" in decision.because


def test_an_ensemble_does_without_what_is_unavailable_and_without_all_the_fallback_answers() -> None:
    policy = MultiplexerEnsemble("multiplexer-ensemble", MUX, 0.4, "top1")
    steps, _ = asked(policy, 0.5, 0.3, 0.8)
    assert steps.throw(GONE).models == ("l",)
    assert ended(steps, said("l", 0.7)).seen.probabilities == pytest.approx([0.7, 0.3])
    steps, _ = asked(policy, 0.5, 0.3, 0.8)
    steps.throw(GONE)
    assert steps.throw(GONE).models == ("m",)
    assert "m is the fallback" in ended(steps, said("m", 0.7)).because
    assert without(policy)[1].models == ("m",)


CASCADE = Cascade("multiplexer-cascade", rungs_of(MODELS, [0.8, 0.8]))
ENTERED = MultiplexerCascade("multiplexer-cascade", MUX, CASCADE, MUX.costs, 0.02)


def test_the_cascade_is_entered_at_the_named_rung_and_climbed_from_there() -> None:
    steps, run = asked(ENTERED, 0.5, 0.7, 0.8)
    assert run.models == ("m",)
    assert "mux gives m a chance of 0.70" in run.because
    assert steps.send((said("m", 0.6),)).models == ("l",)
    assert ended(steps, said("l", 0.6)).because == "entered at m; l is the last rung"
    steps, _ = asked(ENTERED, 0.5, 0.7, 0.8)
    assert "m is sure" in ended(steps, said("m", 0.9)).because


def test_a_cascade_without_its_multiplexer_or_its_rung_is_climbed_from_the_first() -> None:
    steps, run = without(ENTERED)
    assert run.models == ("s",)
    assert ended(steps, said("s", 0.9)).seen.model == "s"
    steps, run = asked(ENTERED, 0.1, 0.2, 0.9)
    assert run.models == ("l",)
    assert steps.throw(GONE).models == ("s",)


def test_a_rung_that_the_multiplexer_does_not_know_is_not_entered_at() -> None:
    two = Multiplexer("mux", ("m", "l"), np.array([3.0, 10.0]), "right")
    _, run = asked(replace(ENTERED, multiplexer=two), 0.7, 0.2)
    assert run.models == ("m",)
    foreign = Multiplexer("mux", ("x", "y"), np.array([3.0, 10.0]), "right")
    _, run = asked(replace(ENTERED, multiplexer=foreign), 0.7, 0.2)
    assert (run.models, run.because) == (("s",), "first rung")


def edge(**change: Any) -> MultiplexerEdge:
    """s and m are here, and l is at the edge; a photograph stays for a chance of at most 0.1 less."""
    return replace(MultiplexerEdge(MUX, ("s", "m"), "edge:l", "l", 0.9, 0.1, "always"), **change)


def test_only_what_the_device_is_likely_to_get_wrong_is_sent() -> None:
    steps, run = asked(edge(), 0.75, 0.5, 0.8)
    assert run.models == ("s",)
    assert ended(steps, said("s", 0.6)).seen.model == "s"
    steps, run = asked(edge(), 0.5, 0.6, 0.8)
    assert (run.models, run.until) == (("edge:l",), "deadline")
    assert "a chance of 0.60, edge:l of 0.80" in ended(steps, said("edge:l", 0.9)).because
    _, run = asked(edge(there="xl"), 0.5, 0.85, 0.1)
    assert run.models == ("m",), "of a model that the multiplexer does not know its accuracy, 0.9, is the chance"


def test_a_photograph_that_may_not_leave_the_device_stays() -> None:
    steps, run = asked(edge(), 0.5, 0.6, 0.8, photo=Evidence(None, "m", None, on_device=True))
    assert run.models == ("m",)
    assert "may not leave the device" in ended(steps, said("m", 0.6)).because


def test_what_fails_at_the_edge_is_answered_here() -> None:
    steps, _ = asked(edge(), 0.5, 0.6, 0.8)
    assert steps.throw(EngineDiedError("the link is cut")).models == ("m",)
    assert "edge:l did not answer" in ended(steps, said("m", 0.6)).because
    assert without(edge())[1].models == ("m",)


@pytest.mark.parametrize(("confidence", "goes_on"), [(0.95, False), (0.7, True)])
def test_where_an_edge_may_be_asked_in_doubt_alone_a_model_here_is_asked_before(
    confidence: float, goes_on: bool
) -> None:
    steps, run = asked(edge(allow="low-confidence"), 0.5, 0.6, 0.8)
    assert run.models == ("m",)
    if not goes_on:
        assert ended(steps, said("m", confidence)).seen.model == "m"
        return
    assert steps.send((said("m", confidence),)).models == ("edge:l",)
    with pytest.raises(StopIteration) as stop:
        steps.throw(EngineDiedError("the link is cut"))
    assert stop.value.value.seen.model == "m"


@pytest.mark.parametrize(
    ("behind", "here", "there", "margin"),
    [
        # Staying gains 0, -1 and +1 together, 0 and -1: after four as many are right as at the edge.
        ([-0.2, 0.1, 0.1, 0.3, 0.5], [1, 0, 1, 0, 0], [1, 1, 0, 0, 1], 0.3),
        ([0.3, 0.1], [1, 1], [1, 0], 0.3),  # in whatever order they come
        ([0.1, 0.3], [0, 0], [1, 1], -1.0),
    ],
)
def test_as_little_is_sent_as_keeps_the_accuracy_of_the_edge(
    behind: Sequence[float], here: Sequence[int], there: Sequence[int], margin: float
) -> None:
    assert fit_margin(np.array(behind), np.array(here, bool), np.array(there, bool)) == margin


def test_the_margin_is_fitted_for_what_is_here_and_at_the_edge() -> None:
    chances = np.array([[0.9, 0.95], [0.6, 0.9], [0.7, 0.8], [0.2, 0.3]], np.float32)
    part = Part(dict.fromkeys(CRITERIA, ("small", "large")), {"chances": chances})
    made = {"parts": {"multiplexer-edge": part}, "multiplexer": MULTIPLEXER}
    calibration = msgspec.structs.replace(animals(), **made)
    # Under top1 small is right on the first two and large, too; on the others neither is: nothing need be sent.
    found = made_for("top1", calibration, ("small", "middle"), "edge:large", "large", 0.9, "always")
    assert found is not None
    assert (found.here, found.margin) == (("small",), pytest.approx(0.3))
    assert made_for("top1", calibration, ("middle",), "edge:large", "large", 0.9, "always") is None
    assert made_for("top1", animals(), ("small",), "edge:large", "large", 0.9, "always") is None
    unknown = made_for("top1", calibration, ("small", "large"), "edge:xl", "xl", 0.9, "always")
    assert unknown is not None
    assert (unknown.here, unknown.margin) == (("small", "large"), 0.0)


def test_an_ensemble_runs_its_cheapest_model_first_in_whatever_order_the_multiplexer_knows_them() -> None:
    dearest_first = Multiplexer("mux", ("l", "s", "m"), np.array([10.0, 1.0, 3.0]), "right")
    steps, run = asked(MultiplexerEnsemble("multiplexer-ensemble", dearest_first, 0.4, "top1"), 0.8, 0.5, 0.7)
    assert run.models == ("s",)
    assert steps.send((said("s", 0.8),)).models == ("m",)
    assert steps.send((said("m", 0.8),)).models == ("l",)


def test_an_edge_is_asked_where_the_confidence_is_below_its_accuracy_and_not_below_its_chance() -> None:
    for confidence, goes_on in ((0.85, True), (0.9, False)):  # the edge's accuracy is 0.9, its chance here 0.8
        steps, _ = asked(edge(allow="low-confidence"), 0.5, 0.6, 0.8)
        if goes_on:
            assert steps.send((said("m", confidence),)).models == ("edge:l",)
        else:
            assert ended(steps, said("m", confidence)).seen.model == "m"


def test_a_cascade_whose_first_rung_was_entered_is_not_climbed_twice() -> None:
    steps, run = asked(ENTERED, 0.9, 0.2, 0.1)
    assert run.models == ("s",)
    for model in ("m", "l"):
        assert steps.throw(GONE).models == (model,)
    with pytest.raises(ModelUnavailableError, match="gone"):
        steps.throw(GONE)
