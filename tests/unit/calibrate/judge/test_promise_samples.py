"""Which images may test a promise, and which of two thresholds is promised: counted by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jetsel.calibrate.judge.promises import Evidence, Unknown, promises_of
from jetsel.calibrate.record.replay import Run, Sights
from jetsel.policies.promise import Score


def run(score: float, images: int) -> Run:
    """Answers of class 0, all with this score, of a policy without rungs."""
    sights = Sights(np.full((images, 3), score), np.full((images, 1, 3), np.nan), np.zeros((images, 1)))
    ones, never = np.ones(images), np.zeros(images, bool)
    return Run(np.zeros(images, np.int64), ~never, ones, ~never[:, None], never, 0.0, (), sights)


def test_only_the_first_of_near_duplicates_outside_of_the_choosing_folds_tests_the_promise() -> None:
    folds, is_first = np.array([0, 1, 2, 3, 9]), np.array([True, True, True, False, True])
    seen = Evidence({}, np.zeros(5, np.int64), folds, is_first, "top1")
    assert seen.choosing.tolist() == [True, True, False, False, False]
    assert seen.testing.tolist() == [False, False, True, False, True]


def test_with_unknown_images_the_stricter_of_both_thresholds_is_promised() -> None:
    folds = np.arange(400) % 10
    known = Evidence({"p": run(5.0, 400)}, np.zeros(400, np.int64), folds, np.ones(400, bool), "top1")
    score = Score(probability=1.0)
    assert {one.threshold for one in promises_of(known, "p", score).kept} == {-17.0}, "all are right"
    both = replace(known, unknown=Unknown({"p": run(2.0, 400)}))
    # 320 known images and 320 unknown ones, of which each answer is wrong: the threshold must lie above 2.
    assert {one.threshold for one in promises_of(both, "p", score).kept} == {2.01}
