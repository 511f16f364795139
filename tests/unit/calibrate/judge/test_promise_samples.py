"""Which images may aim and test a promise, by hand; and whether other images break it."""

import numpy as np
import pytest
from numpy.typing import NDArray

from jetsel.artefact.promise import Promise, Promises
from jetsel.calibrate.judge.evaluating import check_promises
from jetsel.calibrate.judge.learn_then_test import DELTA, fewest_answers, safe_threshold
from jetsel.calibrate.judge.promises import Split, promises_by_policy, promises_of, tuning_unknown
from jetsel.calibrate.record.replay import PolicyReplay, Scores, replay_all
from jetsel.policies.single import Single
from tests.unit.calibrate.judge.test_learn_then_test import drawn_policies, true_share_wrong
from tests.unit.calibrate.recorded import of_two_classes

NEEDED = fewest_answers(0, 0.01)  # right answers that promise 1 %
DRAWS = 500


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
    for seed in range(DRAWS):
        scores, wrong = drawn_policies(500, 8, shared, seed)
        best = wrong[wrong.sum(axis=1).argmin()]
        for among in broken:
            threshold = safe_threshold(scores[testing], best[testing], level, DELTA / among)
            broken[among] += threshold is not None and true_share_wrong(threshold) > level
    spare = 3 * (DRAWS * DELTA * (1 - DELTA)) ** 0.5
    assert broken[8] <= DELTA * DRAWS
    assert broken[1] > DELTA * DRAWS + spare, "as if nothing had been chosen, it would be broken too often"


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
