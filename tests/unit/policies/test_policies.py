"""Each policy as a generator, fed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from jetsel.base.errors import InDoubtError, ModelUnavailableError
from jetsel.policies.cascade import Cascade, rungs_of
from jetsel.policies.chain import ChainPolicy
from jetsel.policies.policy import Run
from jetsel.premodel import Chain, Neighbours
from tests.unit.policies.stepping import NOTHING, WHOLE, at, ended, said

CASCADE = Cascade("cascade", rungs_of(["s", "m", "l"], [0.8, 0.6]))


def test_cascade_stops_at_the_first_sure_rung() -> None:
    steps = CASCADE(NOTHING)
    assert next(steps).models == ("s",)
    assert steps.send((said("s", 0.79),)).models == ("m",)
    decision = ended(steps, said("m", 0.6))
    assert decision.seen.model == "m"
    assert "confidence 0.60, threshold 0.60" in decision.because


def test_cascade_passes_over_an_unavailable_rung() -> None:
    steps = CASCADE(NOTHING)
    next(steps)
    run = steps.throw(ModelUnavailableError("s broke"))
    assert run == Run(("m",), "s is unavailable")
    assert ended(steps, said("m", 0.9)).seen.model == "m"


def test_cascade_answers_with_the_best_so_far_where_the_last_rung_is_unavailable() -> None:
    steps = CASCADE(NOTHING)
    next(steps)
    steps.send((said("s", 0.1),))
    steps.send((said("m", 0.1),))
    with pytest.raises(StopIteration) as stop:
        steps.throw(ModelUnavailableError("l broke"))
    assert stop.value.value.seen.model == "m"
    assert "l is unavailable" in stop.value.value.because


def test_cascade_without_any_rung_is_unavailable() -> None:
    steps = CASCADE(NOTHING)
    next(steps)
    steps.throw(ModelUnavailableError("s"))
    steps.throw(ModelUnavailableError("m"))
    with pytest.raises(ModelUnavailableError):
        steps.throw(ModelUnavailableError("l"))


# Photographs at 0, 1 and 2 are best left to s, those at 10, 11 and 12 to l, those at 20, 21 and 22 to nobody.
POINTS = np.array([[0], [1], [2], [10], [11], [12], [20], [21], [22]], np.float32)
VOTES = np.array([[1, 0]] * 3 + [[0, 1]] * 3 + [[0, 0]] * 3, np.bool_)
CHAIN = ChainPolicy(
    "chain",
    Chain(("s", "l"), VOTES, Neighbours(POINTS), WHOLE, 3),
    ("contrast",),
)


@pytest.mark.parametrize(("place", "model"), [(1.0, "s"), (11.0, "l")])
def test_chain_runs_the_model_that_the_neighbours_vote_for(place: float, model: str) -> None:
    steps = CHAIN(at(place))
    assert next(steps).models == (model,)
    decision = ended(steps, said(model, 0.2))
    assert not decision.in_doubt
    assert decision.distance == pytest.approx(2 / 3)


def test_chain_in_doubt_uses_the_fallback() -> None:
    steps = CHAIN(at(21))
    assert next(steps).models == ("l",)
    assert ended(steps, said("l", 0.2)).in_doubt


def test_chain_in_doubt_refuses_where_it_is_asked_to() -> None:
    with pytest.raises(InDoubtError, match="on_doubt"):
        next(CHAIN(at(21, fallback=None)))


def test_chain_uses_the_fallback_for_an_unavailable_choice() -> None:
    steps = CHAIN(at(1))
    next(steps)
    assert steps.throw(ModelUnavailableError("s broke")).models == ("l",)
    decision = ended(steps, said("l", 0.2))
    assert decision.because == "s is unavailable; l is the fallback"
    assert not decision.in_doubt


def test_chain_whose_fallback_is_the_unavailable_choice_fails() -> None:
    steps = CHAIN(at(11))
    next(steps)
    with pytest.raises(ModelUnavailableError):
        steps.throw(ModelUnavailableError("l broke"))
