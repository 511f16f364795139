"""The policies that learn more than thresholds, as generators fed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from jetsel.base.errors import ModelUnavailableError
from jetsel.policies.cascade import AveragedCascade, rungs_of
from jetsel.policies.chain import ChainPolicy
from jetsel.policies.multiplexer import CheapestFirst
from jetsel.policies.policy import Evidence, Prediction
from jetsel.premodel import Chain, Neighbours, Soundness
from tests.unit.policies.stepping import WHOLE, at, ended

NOTHING = Evidence(features=None, fallback="l")
GONE = ModelUnavailableError("gone")


def said(model: str, *probabilities: float, embedding: float | None = None) -> Prediction:
    features = None if embedding is None else np.array([embedding], np.float32)
    return Prediction(model, np.array(probabilities, np.float32), max(probabilities), features)


AVERAGED = AveragedCascade("cascade-averaged", rungs_of(["s", "m", "l"], [0.8, 0.7]))


def test_the_mean_is_that_of_the_scaled_logits() -> None:
    # Odds of 4 to 1 and of 1 to 9: the geometric mean is sqrt(4 x 1/9) = 2/3 to 1.
    mean = AVERAGED.answer([said("s", 0.8, 0.2), said("l", 0.1, 0.9)])
    assert mean.model == "l"
    assert mean.probabilities == pytest.approx([0.4, 0.6])
    assert mean.confidence == pytest.approx(0.6)


def test_an_averaged_cascade_stops_when_those_that_ran_are_sure_together() -> None:
    steps = AVERAGED(NOTHING)
    assert next(steps).models == ("s",)
    assert steps.send((said("s", 0.75, 0.25),)).models == ("m",)
    # Odds of 3 and of 3: together 3, which is 0.75.
    decision = ended(steps, said("m", 0.75, 0.25))
    assert decision.seen.model == "m"
    assert "the mean of s and m is sure" in decision.because


def chances_of(*likely: float) -> NDArray[np.float64]:
    return np.array(likely)


def cheapest_first(price: float) -> CheapestFirst:
    def chances(seen: Prediction) -> NDArray[np.float64]:
        if seen.embedding is None:
            raise ValueError("it gave no embedding")
        return chances_of(float(seen.embedding[0]), 0.7, 0.9)

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
    steps = cheapest_first(price)(NOTHING)
    assert next(steps).models == ("s",)
    first = said("s", 0.5, 0.5, embedding=seen)
    if then is None:
        assert ended(steps, first).seen.model == "s"
    else:
        assert steps.send((first,)).models == (then,)
        assert ended(steps, said(then, 1.0)).seen.model == then


def test_an_embedding_that_is_missing_or_leads_nowhere_leaves_the_cheapest_model_s_answer() -> None:
    steps = cheapest_first(0.0)(NOTHING)
    next(steps)
    assert "no embedding" in ended(steps, said("s", 0.5, 0.5)).because
    steps = cheapest_first(0.0)(NOTHING)
    next(steps)
    steps.send((said("s", 0.5, 0.5, embedding=0.1),))
    with pytest.raises(StopIteration) as stop:
        steps.throw(GONE)
    assert stop.value.value.seen.model == "s"
    steps = cheapest_first(0.0)(NOTHING)
    next(steps)
    assert steps.throw(GONE).models == ("l",), "where the cheapest is unavailable, the best stands in"
    assert ended(steps, said("l", 0.5, 0.5)).seen.model == "l"


def test_a_choice_among_far_neighbours_is_in_doubt_and_says_how_often_such_were_right() -> None:
    points, votes = np.array([[0.0], [0.5]], np.float32), np.array([[1], [1]], bool)
    soundness = Soundness(limit=1.0, steps=((0.2, 0.9), (0.6, 0.5), (math.inf, 0.1)))
    chain = Chain(("s",), votes, Neighbours(points), WHOLE, 1, soundness)
    policy = ChainPolicy("chain", chain, ("hue1",))
    assert "right 90 % of the time" in next(policy(at(0.6))).because  # 0.1 away
    assert "right 50 % of the time" in next(policy(at(0.8))).because  # 0.3 away
    doubtful = next(policy(at(1.6)))
    assert doubtful.models == ("l",)
    assert "1.100 away, too far to be trusted" in doubtful.because
    assert [chain.choose(np.array([x], np.float32)).model for x in (0.6, 1.6)] == ["s", None]
