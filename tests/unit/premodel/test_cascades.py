"""Fitted cascades: judged by replay, and none better left out where all can be tried."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetsel.calibrate.record.replay import replay
from jetsel.policies.cascade import Cascade, rungs_of
from jetsel.premodel.cascades import QUANTILES, FittedCascade, Outputs, fit_cascades, replay_cascade, tried_cascades
from tests.unit.calibrate.recorded import COSTS_MS, drawn

EVEN = dict.fromkeys(COSTS_MS, 1.0)


def outputs(seed: int, images: int = 30) -> Outputs:
    return drawn(seed, images).table(EVEN).outputs


@given(seed=st.integers(0, 1000), thresholds=st.lists(st.floats(0, 1), min_size=2, max_size=2))
def test_judging_is_replaying_the_policy(seed: int, thresholds: list[float]) -> None:
    found = drawn(seed)
    policy = Cascade("cascade", rungs_of(found.models, thresholds))
    correct, ran = replay_cascade(FittedCascade((0, 1, 2), (*thresholds, 0.0)), outputs(seed))
    for photograph in range(len(found.classes)):
        replayed = replay(policy, found, photograph, EVEN, "l")
        assert replayed.decision is not None
        assert (replayed.decision.prediction.label == found.classes[photograph]) == correct[photograph]
        assert replayed.models_ms == ran[photograph] @ found.costs()


@given(seed=st.integers(0, 1000))
def test_all_pairs_and_thresholds_are_tried_and_none_beats_what_is_fitted_for_a_budget(seed: int) -> None:
    seen = outputs(seed)
    tried = tried_cascades(seen)
    everything = [FittedCascade((model,), (0.0,)) for model in range(3)]
    for first, last in ((0, 1), (0, 2), (1, 2)):
        thresholds = np.unique(np.quantile(seen.after((first,))[0], QUANTILES)).tolist()
        everything += [FittedCascade((first, last), (threshold, 0.0)) for threshold in thresholds]
    assert set(tried.cascades) == set(everything)
    for one, accuracy, cost in zip(tried.cascades, tried.accuracy, tried.cost, strict=True):
        correct, ran = replay_cascade(one, seen)
        assert (accuracy, cost) == pytest.approx((correct.mean(), (ran @ seen.costs).mean()))
    budgets = np.linspace(0.1, 1.3, 40)
    for budget, fitted in zip(budgets, fit_cascades(seen, budgets), strict=True):
        within = tried.cost <= budget * 10
        correct, ran = replay_cascade(fitted, seen)
        assert correct.mean() == pytest.approx(tried.accuracy[within].max())
        assert (ran @ seen.costs).mean() <= budget * 10 + 1e-9


def test_where_no_budget_is_kept_the_fastest_is_taken() -> None:
    assert fit_cascades(outputs(1), [0.01]) == [FittedCascade((0,), (0.0,))]


def test_what_was_computed_of_all_images_holds_for_some() -> None:
    rows = np.array([3, 3, 17, 0])
    whole = drawn(5).table(EVEN)
    for ran in ((0,), (0, 2)):
        for part, of_all in zip(whole.take(rows).outputs.after(ran), whole.outputs.after(ran), strict=True):
            np.testing.assert_array_equal(part, of_all[rows])
