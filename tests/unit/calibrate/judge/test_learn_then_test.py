"""The promise of an error rate: the guarantee on scores whose error curve is known, its edges, and who may test it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from numpy.typing import NDArray

from jetsel.artefact.promise import Promise, Promises
from jetsel.calibrate.binomial import binomial_tail
from jetsel.calibrate.judge.evaluating import check_promises
from jetsel.calibrate.judge.learn_then_test import (
    DELTA,
    MOST_ANSWERS_LOST,
    early_threshold,
    fewest_answers,
    images_needed,
    safe_threshold,
)
from jetsel.calibrate.judge.promises import Split, promises_by_policy, promises_of, tuning_unknown
from jetsel.calibrate.record.replay import PolicyReplay, Scores, replay_all
from jetsel.policies.single import Single
from tests.unit.calibrate.recorded import of_two_classes

DRAWS = 2000
MEAN, DEVIATION = 3.0, 2.5  # of scores, which are the true log-odds of being right
FINE = np.linspace(-10, 16, 20_001)


def drawn_policies(n: int, policies: int, shared: float, seed: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """n scores, and which answers (policies, n) are wrong. shared: the share of them whose luck all policies share."""
    draw = np.random.default_rng(seed)
    scores = draw.normal(MEAN, DEVIATION, n)
    luck = np.where(draw.random((policies, n)) < shared, draw.random(n), draw.random((policies, n)))
    return scores, luck > 1 / (1 + np.exp(-scores))


def drawn(n: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """n scores, and whether each answer is wrong."""
    scores, wrong = drawn_policies(n, 1, 0.0, seed)
    return scores, wrong[0]


def true_share_wrong(threshold: float) -> float:
    """What the share of wrong answers at or above a threshold is in truth, by integration."""
    density = np.exp(-((FINE - MEAN) ** 2) / (2 * DEVIATION**2)) * (threshold <= FINE)
    return float((density / (1 + np.exp(FINE))).sum() / density.sum())


@pytest.mark.slow
@pytest.mark.parametrize(("n", "level"), [(200, 0.1), (1000, 0.05), (1000, 0.02)])
def test_the_promise_is_kept_in_nine_of_ten_calibrations(n: int, level: float) -> None:
    found = [safe_threshold(*drawn(n, seed), level) for seed in range(DRAWS)]
    made = [threshold for threshold in found if threshold is not None]
    assert len(made) > 0.6 * DRAWS
    broken = sum(true_share_wrong(threshold) > level for threshold in made)
    # Of 2,000 draws 200 may break it; three standard deviations of that count are 40.
    assert 0 < broken <= DELTA * DRAWS + 40


def test_a_promise_answers_nearly_what_the_true_curve_allows() -> None:
    best = FINE[np.argmax([true_share_wrong(threshold) <= 0.05 for threshold in FINE[::20]]) * 20]
    threshold = safe_threshold(*drawn(4000, 1), 0.05)
    assert threshold is not None
    assert best - 0.5 < threshold < best + 0.5


def test_the_tail_is_that_of_the_binomial_distribution() -> None:
    assert binomial_tail(0, 45, 0.05) == pytest.approx(0.95**45)
    assert binomial_tail(1, 3, 0.5) == pytest.approx(0.5)
    assert binomial_tail(3, 3, 0.1) == 1.0
    assert fewest_answers(0, 0.05) == 45, "0.95 ** 44 is above a tenth still"


@pytest.mark.parametrize(
    ("wrong", "promise"),
    [(np.zeros(100, bool), True), (np.ones(100, bool), False), (np.arange(100) < 50, False)],
    ids=["all right", "all wrong", "ties, half of them wrong"],
)
def test_where_all_scores_are_the_same_all_are_answered_or_none(wrong: NDArray[np.bool_], promise: bool) -> None:
    threshold = safe_threshold(np.full(100, 2.0), wrong, 0.05)
    assert (threshold is not None and threshold <= 2.0) == promise


def test_no_threshold_after_the_first_that_fails_is_tried() -> None:
    # At 4 a threshold answers 130, 30 of them wrong, and fails; at 3 it would answer 1130, and 30 wrong are few again.
    scores = np.repeat([5.0, 4.0, 3.0], [100, 30, 1000])
    assert safe_threshold(scores, scores == 4.0, 0.1) == 4.01


def test_ten_images_promise_nothing_and_say_how_many_would() -> None:
    scores, wrong = np.arange(10.0), np.zeros(10, bool)
    assert safe_threshold(scores, wrong, 0.05) is None
    assert images_needed(scores, wrong, 0.05) in range(45, 50)
    assert images_needed(scores, np.ones(10, bool), 0.05) is None


@given(some.integers(1, 300), some.sampled_from([0.01, 0.05, 0.1]), some.integers(0, 2**31))
def test_what_is_promised_was_so_on_the_images_themselves(n: int, level: float, seed: int) -> None:
    draw = np.random.default_rng(seed)
    scores, wrong = np.round(draw.normal(size=n), 1), draw.random(n) < 0.03
    threshold = safe_threshold(scores, wrong, level)
    if threshold is not None:
        answered = scores >= threshold
        assert answered.sum() >= fewest_answers(0, level)
        assert wrong[answered].mean() <= level


def test_early_refusal_costs_few_answers_and_looks_at_no_label() -> None:
    draw = np.random.default_rng(3)
    first = draw.normal(size=1000)
    final = first + 0.5 * draw.normal(size=1000)
    first[:200] = np.nan  # these stopped at the first model
    limit = early_threshold(first, final, 0.5)
    assert limit is not None
    given_up = (first < limit) & (final >= 0.5)
    assert 0 < given_up.sum() <= MOST_ANSWERS_LOST * (final >= 0.5).sum()
    assert (first < limit)[200:].mean() > 0.3
    all_of_them = early_threshold(np.array([np.nan, np.nan, 1.0, 2.0]), np.array([9.0, 8.0, 3.0, 2.0]), 5.0)
    assert all_of_them is not None
    assert all_of_them > 2.0, "none that goes on would be answered"


NEEDED = fewest_answers(0, 0.01)  # right answers that promise 1 %
CALIBRATIONS = 500


def run(final: NDArray[np.float64], looks: NDArray[np.float64] | None = None) -> PolicyReplay:
    """Answers of class 0 with these scores (n,), of a policy that has no rungs, or two with these looks (n,)."""
    n = len(final)
    looks = np.full(n, np.nan) if looks is None else looks
    never = np.zeros(n, bool)
    scores = Scores(final, looks, np.ones(n))
    return PolicyReplay(np.zeros(n, np.int64), ~never, np.full(n, 2.0), ~never[:, None], never, 0.0, (), scores)


def right(n: int) -> NDArray[np.bool_]:
    return np.zeros(n, bool)


def levels(folds: NDArray[np.int64], groups: NDArray[np.int64] | None, wrong: NDArray[np.bool_]) -> list[float]:
    """The levels that answers of one score promise."""
    found = promises_of(run(np.full(len(folds), 5.0)), wrong, Split.of(folds, groups))
    return [one.wrong_at_most for one in found.kept]


def test_images_of_the_aiming_folds_do_not_test_the_promise() -> None:
    folds = np.repeat([0, 1, 2], [200, 200, NEEDED - 1])
    assert 0.01 not in levels(folds, None, right(len(folds))), "one image is missing"
    folds = np.append(folds, 9)
    assert 0.01 in levels(folds, None, right(len(folds)))
    assert 0.01 in levels(folds, None, folds < 2), "what is wrong there tells nothing"


def test_of_near_duplicates_the_first_alone_tests_the_promise_and_counts() -> None:
    folds = np.full(3 * NEEDED - 3, 5)
    groups = np.arange(len(folds)) % (NEEDED - 1)
    assert 0.01 not in levels(folds, groups, right(len(folds))), "three copies of each prove no more"
    groups = np.append(groups, NEEDED - 1)
    wrong = np.append(np.arange(len(folds)) >= NEEDED - 1, False)
    assert 0.01 in levels(np.append(folds, 5), groups, wrong), "the copies are wrong, the first of each is right"
    assert Split.of(folds, groups[:-1]).recorded == NEEDED - 1


def test_early_refusal_is_aimed_by_the_aiming_images_alone() -> None:
    draw = np.random.default_rng(4)
    final = draw.normal(3.0, 2.0, 1000)
    answers, folds = run(final, final + draw.normal(size=1000)), np.arange(1000) % 10
    split, wrong = Split.of(folds, None), final < draw.normal(1.0, 1.0, 1000)

    def early(wrong: NDArray[np.bool_]) -> set[tuple[float | None, ...]]:
        return {one.early for one in promises_of(answers, wrong, split).kept}

    assert any(limit is not None for one in early(wrong) for limit in one)
    assert early(wrong & split.tuning) >= early(wrong), "those that test may be right as well"
    assert not early(wrong & split.testing) & early(wrong), "those that aim may not"


def test_with_unknown_images_the_stricter_of_both_thresholds_is_promised() -> None:
    known, split = run(np.full(400, 5.0)), Split.of(np.arange(400) % 10, None)
    alone = promises_of(known, right(400), split).kept
    assert {one.threshold for one in alone} == {-17.0}, "all are right"
    # 320 known images and 320 unknown ones, of which each answer is wrong: the threshold must lie above 2.
    both = promises_of(known, right(400), split, run(np.full(400, 2.0))).kept
    assert {one.threshold for one in both} == {2.01}
    assert {one.unknown_refused for one in both} == {1.0}
    surer = run(np.where(tuning_unknown(400), 9.0, 2.0))
    kept = promises_of(known, right(400), split, surer).kept
    assert {one.threshold for one in kept} == {2.01}, "those that aim do not test"
    assert {one.unknown_refused for one in kept} == {1.0}


def test_the_default_and_policies_whose_point_was_chosen_pay_for_that() -> None:
    scores, wrong = drawn_policies(1000, 1, 0.0, seed=2)
    one, split = run(scores), Split.of(np.arange(1000) % 10, None)
    names = ("single:s", "cascade", "cascade:2", "single:l")
    found = promises_by_policy(dict.fromkeys(names, one), wrong[0].astype(np.int64), split, {}, "single:s", rivals=8)
    for name in ("single:s", "cascade"):
        assert found[name] == promises_of(one, wrong[0], split, chosen_among=8)
    for name in ("cascade:2", "single:l"):
        assert found[name] == promises_of(one, wrong[0], split)
    kept = found["single:s"].kept, found["single:l"].kept
    thresholds = [{level.wrong_at_most: level.threshold for level in levels} for levels in kept]
    assert thresholds[0]
    assert all(threshold > thresholds[1][level] for level, threshold in thresholds[0].items())


@pytest.mark.parametrize("shared", [0.9, 0.5])
def test_the_promise_of_the_best_of_eight_holds_although_the_same_images_chose_it(shared: float) -> None:
    """Eight equally good policies, of which the most accurate is the default, over 500 draws of calibration images."""
    level, broken = 0.1, {1: 0, 8: 0}
    testing = Split.of(np.arange(500) % 10, None).testing
    for seed in range(CALIBRATIONS):
        scores, wrong = drawn_policies(500, 8, shared, seed)
        best = wrong[wrong.sum(axis=1).argmin()]
        for among in broken:
            threshold = safe_threshold(scores[testing], best[testing], level, DELTA / among)
            broken[among] += threshold is not None and true_share_wrong(threshold) > level
    spare = 3 * (CALIBRATIONS * DELTA * (1 - DELTA)) ** 0.5
    assert broken[8] <= DELTA * CALIBRATIONS
    assert broken[1] > DELTA * CALIBRATIONS + spare, "as if nothing had been chosen, it would be broken too often"


MARGINS = [4.0] * 20 + [1.0] * 20  # the log-odds of class 0


def promise(level: float, threshold: float) -> Promise:
    return Promise(level, threshold, (), answered=0.5, wrong=0.0)


def test_a_promise_is_broken_if_the_whole_interval_is_above_its_level() -> None:
    recording = of_two_classes(MARGINS, classes=[1, *[0] * 19, *[1] * 20])  # 1 of the sure ones is wrong, and the rest
    run = replay_all(Single("s"), recording, range(40), {"s": 1.0}, "s")
    kept = (promise(0.01, 9.0), promise(0.02, 3.0), promise(0.2, 0.5))
    found = check_promises("single:s", Promises(kept, (), 40), run, recording.classes == 1, None)
    assert [(one.policy, one.wrong_at_most, one.is_kept) for one in found] == [
        ("single:s", 0.01, True),
        ("single:s", 0.02, None),
        ("single:s", 0.2, False),
    ]
    nothing, half, all_of = found
    assert (nothing.answered, nothing.wrong, nothing.wrong_interval) == (0.0, None, None)
    assert (half.answered, half.wrong) == (0.5, pytest.approx(1 / 20))
    assert half.wrong_interval is not None
    # Wilson: (1/20 + z z/40 -+ z sqrt(0.05 0.95/20 + z z/1600)) / (1 + z z/20)
    assert half.wrong_interval.low == pytest.approx(0.00888, abs=1e-5)
    assert (all_of.answered, all_of.wrong) == (1.0, pytest.approx(21 / 40))
    groups = np.array([0] * 20 + [1] * 20)  # two images, each twenty times: they prove little
    (grouped,) = check_promises("s", Promises(kept[2:], (), 40), run, recording.classes == 1, groups)
    assert grouped.is_kept is None, "two images tell little"
