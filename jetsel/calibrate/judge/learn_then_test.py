"""Find confidence thresholds that guarantee an error rate (the "level") of the answers.

The promise is that of Learn then Test (Angelopoulos, Bates, Candès, Jordan and Lei 2021, arXiv 2110.01052): with
probability 1 - DELTA over the calibration images, at most the requested share of the answers is wrong. The number of
wrong answers above a threshold is binomial, so its exact tail is a valid p-value. Thresholds are tested from the
strictest to the mildest, up to the first that fails (fixed-sequence testing), so no correction for several tests is
needed.

Scores are log-odds of the answer's probability, higher for surer.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.binomial import binomial_tail

LEVELS = (0.01, 0.02, 0.05, 0.1)
"""Error rates (shares of wrong answers) to guarantee; fixed before any data is seen."""
DELTA = 0.1  # share of all calibrations whose promise may be broken
THRESHOLDS = np.arange(1700, -1701, -1) / 100
"""Thresholds in the order of testing, fixed before any data is seen."""
TOLERATED = (3, 2, 1, 0)  # wrong answers that the first test may allow, if there are enough images
MOST_TIMES = 1000  # largest advised number of images, in multiples of the number at hand
MOST_ANSWERS_LOST = 0.02  # share of the answers that early refusal may cost

Floats = NDArray[np.float64]


@lru_cache(maxsize=1000)
def fewest_answers(wrong: int, level: float, delta: float = DELTA) -> int:
    """Return the least number of answers among which `wrong` wrong ones still prove an error rate below `level`.

    delta: probability of proving it falsely.
    """
    too_few, enough = wrong, math.ceil(16 + 8 * (wrong - math.log(delta)) / level)
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        too_few, enough = (too_few, middle) if binomial_tail(wrong, middle, level) <= delta else (middle, enough)
    return enough


def count_answers(scores: Floats, wrong: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many answers, and how many wrong ones, score at least each of THRESHOLDS; -inf never does.

    scores: (n,), log-odds of each answer. wrong: (n,), whether it is wrong.
    """
    all_of, wrong_of = np.sort(scores), np.sort(scores[wrong])
    return (
        len(all_of) - np.searchsorted(all_of, THRESHOLDS, side="left"),
        len(wrong_of) - np.searchsorted(wrong_of, THRESHOLDS, side="left"),
    )


def safe_threshold(scores: Floats, wrong: NDArray[np.bool_], level: float, delta: float = DELTA) -> float | None:
    """Return the mildest threshold that guarantees a share of at most `level` wrong answers; None if none does.

    An answer is given if its score is at least the threshold. scores: (n,), -inf for images that are refused anyway.
    wrong: (n,). The images must not have fitted the temperatures or the policy, and near-duplicates count once. delta:
    share of calibrations whose promise may be broken.

    Testing starts at the strictest threshold with enough answers to pass with some wrong ones (TOLERATED, as far as
    half of the images allow). Scores alone decide the start. The promise stays exact if surer answers are not wrong
    more often: a later start only adds answers that are wrong more often, which makes the test harder.
    """
    answered, errors = count_answers(scores, wrong)
    return _mildest_threshold(answered, errors, level, delta, len(scores))


def _mildest_threshold(
    answered: NDArray[np.int64], errors: NDArray[np.int64], level: float, delta: float, n: int
) -> float | None:
    """Return the last of THRESHOLDS before the first that fails the test, None if the first one fails.

    answered, errors: from `count_answers`. n: number of images.
    """
    needed = [fewest_answers(tolerated, level, delta) for tolerated in TOLERATED]  # rises with the tolerated errors
    least = next((answers for answers in needed if answers <= n / 2), needed[-1])
    threshold = None
    for index in np.flatnonzero(answered >= least).tolist():
        if binomial_tail(int(errors[index]), int(answered[index]), level) > delta:
            break
        threshold = float(THRESHOLDS[index])
    return threshold


def naive_threshold(scores: Floats, wrong: NDArray[np.bool_], level: float) -> float | None:
    """Return the mildest threshold with at most `level` wrong answers on these images, without a guarantee."""
    answered, errors = count_answers(scores, wrong)
    indices = np.flatnonzero((answered > 0) & (errors <= level * answered))
    return float(THRESHOLDS[indices[-1]]) if len(indices) else None


def images_needed(scores: Floats, wrong: NDArray[np.bool_], level: float, delta: float = DELTA) -> int | None:
    """Return how many similar images a guarantee of `level` would need; None if more images would not help.

    The numbers of answers and errors are scaled up in steps of 1.1 until the test passes.
    """
    answered, errors = count_answers(scores, wrong)
    n, factor = len(scores), 1.0
    while factor <= MOST_TIMES:
        scaled = np.floor(factor * answered).astype(np.int64)
        if (
            _mildest_threshold(scaled, np.ceil(factor * errors).astype(np.int64), level, delta, int(factor * n))
            is not None
        ):
            return math.ceil(factor * n)
        factor *= 1.1
    return None


def early_threshold(first_scores: Floats, final_scores: Floats, threshold: float) -> float | None:
    """Return the score after a cascade's first model below which to refuse at once; None if it would refuse nothing.

    Images that score so low would hardly reach `threshold` in the end, so the later models are saved. first_scores:
    (n,), after the first model, NaN for images that ended there. final_scores: (n,), of the answers.

    Early refusal costs at most MOST_ANSWERS_LOST of the answers above the threshold. It ignores which answers are
    right, so the guarantee can be tested on the same images.
    """
    continued, is_given = first_scores[~np.isnan(first_scores)], final_scores >= threshold
    would_answer = np.sort(first_scores[is_given & ~np.isnan(first_scores)])
    most_lost = int(MOST_ANSWERS_LOST * is_given.sum())
    if most_lost >= len(would_answer):
        return float(np.nextafter(continued.max(), np.inf))  # refuse all images that would go on
    limit = float(would_answer[most_lost])
    return limit if (continued < limit).any() else None
