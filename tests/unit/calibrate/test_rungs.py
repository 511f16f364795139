"""Fitted cascades: judged by hand, none better left out where all can be tried, none on the front beaten by another."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetsel.calibrate.replay import judge_policy
from jetsel.calibrate.thresholds import PRICES, QUANTILES, fit_cascades, judge
from jetsel.selection.cascade import Cascade
from tests.unit.calibrate.recorded import COSTS_MS, drawn

COSTS = np.array([1.0, 10.0])
CONFIDENCES = np.array([[0.9, 0.5], [0.6, 0.5], [0.5, 0.5], [0.2, 0.5]], np.float32)
RIGHT = np.array([[True, False], [False, True], [True, True], [False, False]])


@pytest.mark.parametrize(
    ("rungs", "thresholds", "accuracy", "cost_ms"),
    [
        ((0,), (), 2 / 4, 1.0),
        ((1,), (), 2 / 4, 10.0),
        ((0, 1), (0.7,), 3 / 4, 1 + 10 * 3 / 4),  # the first is answered by the cheap model, three by the other
        ((0, 1), (0.5,), 2 / 4, 1 + 10 * 1 / 4),  # a confidence at the threshold is enough
        ((0, 1), (0.0,), 2 / 4, 1.0),
        ((0, 1), (1.0,), 2 / 4, 11.0),
        ((0, 1), (0.7, 0.9), 3 / 4, 1 + 10 * 3 / 4),  # the last rung takes all, whatever stands for it
    ],
)
def test_a_cascade_judged_by_hand(
    rungs: tuple[int, ...], thresholds: tuple[float, ...], accuracy: float, cost_ms: float
) -> None:
    assert judge(rungs, thresholds, CONFIDENCES, RIGHT, COSTS) == pytest.approx((accuracy, cost_ms))


@given(st.integers(0, 1000), st.lists(st.floats(0, 1), min_size=2, max_size=2))
def test_judging_is_replaying_the_policy(seed: int, thresholds: list[float]) -> None:
    found = drawn(seed)
    even = dict.fromkeys(found.models, 1.0)
    outcome = judge_policy(Cascade.of("c", found.models, thresholds), found, "top1", even, "l")
    costs = np.array(list(COSTS_MS.values()))
    judged = judge((0, 1, 2), tuple(thresholds), found.confidences("top1", even), found.right("top1"), costs)
    assert judged == pytest.approx((outcome.accuracy, outcome.mean_ms))


def two_models(seed: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    return draw.random((12, 2), dtype=np.float32), draw.random((12, 2)) < [0.5, 0.8]


@given(st.integers(0, 1000))
def test_at_every_price_nothing_beats_the_front_where_all_can_be_tried(seed: int) -> None:
    confidences, right = two_models(seed)
    front = fit_cascades(confidences, right, COSTS)
    grid = np.quantile(confidences[:, 0], QUANTILES)
    everything = [((0,), ()), ((1,), ()), *(((0, 1), (float(t),)) for t in grid)]
    judged = [judge(rungs, thresholds, confidences, right, COSTS) for rungs, thresholds in everything]
    for price in PRICES / COSTS.max():
        best = max(accuracy - price * cost for accuracy, cost in judged)
        assert max(f.accuracy - price * f.cost_ms for f in front) == pytest.approx(best)


@given(st.integers(0, 1000))
def test_on_the_front_who_costs_more_is_right_more_often(seed: int) -> None:
    found = drawn(seed)
    confidences, right = found.confidences("top1", dict.fromkeys(found.models, 1.0)), found.right("top1")
    costs = np.array(list(COSTS_MS.values()))
    front = fit_cascades(confidences, right, costs)
    for cheaper, dearer in itertools.pairwise(front):
        assert cheaper.cost_ms < dearer.cost_ms
        assert cheaper.accuracy < dearer.accuracy
    for one in front:
        assert one.thresholds[-1] == 0.0
        assert len(one.thresholds) == len(one.rungs)
        assert list(one.rungs) == sorted(one.rungs)
        assert (one.accuracy, one.cost_ms) == judge(one.rungs, one.thresholds, confidences, right, costs)
    for model in range(3):  # each model alone is beaten, or stands on the front
        accuracy = right[:, model].mean()
        assert any(f.accuracy >= accuracy - 1e-12 and f.cost_ms <= costs[model] for f in front)


def test_a_cheap_model_that_knows_when_it_is_right_leads_the_cascade() -> None:
    sure = np.array([0.9] * 8 + [0.1] * 4, np.float32)
    confidences = np.stack([sure, np.full(12, 0.5, np.float32)], axis=1)
    right = np.stack([sure > 0.5, np.ones(12, bool)], axis=1)
    best = fit_cascades(confidences, right, COSTS)[-1]
    assert best.rungs == (0, 1)
    assert 0.1 < best.thresholds[0] <= 0.9
    assert (best.accuracy, best.cost_ms) == pytest.approx((1.0, 1 + 10 * 4 / 12))


def test_at_most_four_rungs_are_used() -> None:
    draw = np.random.default_rng(5)
    confidences = draw.random((20, 5), dtype=np.float32)
    front = fit_cascades(confidences, draw.random((20, 5)) < confidences, np.array([1.0, 2.0, 4.0, 8.0, 16.0]))
    assert max(len(f.rungs) for f in front) <= 4
