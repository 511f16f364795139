"""Fitted cascades: judged by replay, and none better left out where all can be tried."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import replay
from jetsel.policies.cascade import AveragedCascade, Cascade, rungs_of
from jetsel.premodel.cascades import PRICES, QUANTILES, Fitted, Outputs, fit_cascades, judge
from tests.unit.calibrate.recorded import COSTS_MS, drawn

EVEN = dict.fromkeys(COSTS_MS, 1.0)


def outputs(recording: Recording, *, averaged: bool = False) -> Outputs:
    return recording.table(EVEN).outputs(averaged=averaged)


@pytest.mark.parametrize("averaged", [False, True])
@given(seed=st.integers(0, 1000), thresholds=st.lists(st.floats(0, 1), min_size=2, max_size=2))
def test_judging_is_replaying_the_policy(averaged: bool, seed: int, thresholds: list[float]) -> None:
    found = drawn(seed)
    policy = (
        AveragedCascade("a", rungs_of(found.models, thresholds))
        if averaged
        else Cascade("c", rungs_of(found.models, thresholds))
    )
    correct, ran = judge(Fitted((0, 1, 2), (*thresholds, 0.0)), outputs(found, averaged=averaged))
    for photograph in range(len(found.classes)):
        replayed = replay(policy, found, photograph, EVEN, "l")
        assert replayed.decision is not None
        assert (replayed.decision.seen.label == found.classes[photograph]) == correct[photograph]
        assert replayed.models_ms == ran[photograph] @ found.costs()


def judged(fitted: Fitted, heard: Outputs) -> tuple[float, float]:
    correct, ran = judge(fitted, heard)
    return float(correct.mean()), float((ran @ heard.costs).mean())


@pytest.mark.slow
@pytest.mark.parametrize("averaged", [False, True])
@given(seed=st.integers(0, 1000))
def test_at_every_price_nothing_of_two_rungs_beats_what_is_fitted(averaged: bool, seed: int) -> None:
    three = drawn(seed, photographs=12)
    found = dataclasses.replace(three, models=("s", "l"), logits=three.logits[[0, 2]])
    heard = outputs(found, averaged=averaged)
    everything = [Fitted((0,), (0.0,)), Fitted((1,), (0.0,))]
    everything += [Fitted((0, 1), (float(t), 0.0)) for t in np.quantile(heard.of((0,))[0], QUANTILES)]
    fitted = [judged(one, heard) for one in fit_cascades(heard, np.linspace(0.05, 1.3, 200))]
    for price in PRICES / COSTS_MS["l"]:
        values = [right - price * cost for right, cost in (judged(one, heard) for one in everything)]
        assert max(right - price * cost for right, cost in fitted) == pytest.approx(max(values))


def test_where_no_budget_is_kept_the_fastest_is_taken() -> None:
    assert fit_cascades(outputs(drawn(1)), [0.01]) == [Fitted((0,), (0.0,))]
