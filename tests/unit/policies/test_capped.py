"""Policies without the most expensive models, as generators fed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from jetsel.base.errors import DeadlineError, ModelUnavailableError
from jetsel.policies.capped import capped
from jetsel.policies.cascade import Cascade, rungs_of
from jetsel.policies.chain import ChainPolicy
from jetsel.policies.policy import Decision, Evidence, OutOfTime, Policy, Run, Steps
from jetsel.policies.single import Single
from jetsel.premodel import Chain, Neighbours
from tests.unit.policies.stepping import NOTHING, WHOLE, at, ended, said

MODELS = ["s", "m", "l"]
WHY = "the power budget is exceeded"


CASCADE = Cascade("cascade", rungs_of(MODELS, [0.8, 0.6]))


def test_a_policy_that_asks_for_nothing_left_out_is_as_it_was() -> None:
    steps = capped(CASCADE, MODELS, 1, WHY)(NOTHING)
    assert next(steps) == Run(("s",), "first rung")
    assert ended(steps, said("s", 0.9)).because == "s is sure: confidence 0.90, threshold 0.80"


def test_where_something_has_run_the_best_so_far_is_the_answer() -> None:
    steps = capped(CASCADE, MODELS, 1, WHY)(NOTHING)
    next(steps)
    assert steps.send((said("s", 0.5),)).models == ("m",)
    decision = ended(steps, said("m", 0.4))
    assert decision.seen.model == "m"
    assert "without l, the power budget is exceeded" in decision.because


def test_each_level_leaves_out_one_more_and_the_cheapest_always_stays() -> None:
    single = Single("l")
    stand_ins = [next(capped(single, MODELS, level, WHY)(NOTHING)).models for level in (1, 2, 3, 99)]
    assert stand_ins == [("m",), ("s",), ("s",), ("s",)]
    assert next(capped(single, ["l"], 1, WHY)(NOTHING)).models == ("l",), "the only model of a family"


def chain_policy(vote: list[bool]) -> ChainPolicy:
    """A chain that knows one photograph, at 0.5, on which the models were right as `vote` says."""
    points = Neighbours(np.array([[0.5]], np.float32))
    chain = Chain(tuple(MODELS), np.array([vote]), points, WHOLE, 1)
    return ChainPolicy("chain", chain, ("x",))


def test_a_stand_in_keeps_what_the_policy_says_of_doubt_and_distance() -> None:
    steps = capped(chain_policy([False, False, False]), MODELS, 2, WHY)(at(0.5))
    assert next(steps).models == ("s",)
    decision = ended(steps, said("s", 0.9))
    assert decision.in_doubt
    assert decision.distance == pytest.approx(0.0)
    assert "s stands in, without l" in decision.because


def test_a_stand_in_that_is_unavailable_gives_way_to_the_next_cheaper_one() -> None:
    steps = capped(Single("l"), MODELS, 1, WHY)(NOTHING)
    assert next(steps).models == ("m",)
    run = steps.throw(ModelUnavailableError("m broke"))
    assert run.models == ("s",)
    assert ended(steps, said("s", 0.3)).seen.model == "s"


def test_the_policy_hears_of_failures_as_before_and_goes_on_by_itself() -> None:
    steps = capped(CASCADE, MODELS, 1, WHY)(NOTHING)
    next(steps)
    assert steps.throw(ModelUnavailableError("s broke")) == Run(("m",), "s is unavailable")


def test_what_the_policy_does_not_catch_ends_it_as_before() -> None:
    for signal in (OutOfTime(), DeadlineError("late")):
        steps = capped(CASCADE, MODELS, 1, WHY)(NOTHING)
        next(steps)
        with pytest.raises(type(signal)):
            steps.throw(signal)


def test_a_policy_that_asks_for_several_at_once_is_answered_by_the_stand_in_alone() -> None:
    def both(_: Evidence) -> Steps:
        _, second = yield Run(("s", "l"), "two ask each other")
        return Decision(second, "the second knows best")

    steps = capped(both, MODELS, 1, WHY)(NOTHING)  # type: ignore[arg-type]
    assert next(steps).models == ("m",)
    decision = ended(steps, said("m", 0.7))
    assert (decision.seen.model, "m stands in" in decision.because) == ("m", True)


@pytest.mark.parametrize(
    ("policy", "level", "first", "models"),
    [
        (CASCADE, 1, ("s",), ("s", "m")),
        (chain_policy([True] * 3), 1, ("s", "m"), ("s", "m")),
        (chain_policy([True] * 3), 2, ("s",), ("s",)),
    ],
)
def test_it_goes_by_the_policy_s_name_and_says_what_it_may_run(
    policy: Policy, level: int, first: tuple[str, ...], models: tuple[str, ...]
) -> None:
    found = capped(policy, MODELS, level, WHY)
    assert (found.name, found.features) == (policy.name, policy.features)
    assert (found.first, found.models) == (first, models)
