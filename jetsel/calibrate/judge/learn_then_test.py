"""Thresholds on how sure an answer is that keep an error rate among the answers given.

The promise is that of Learn then Test (Angelopoulos, Bates, Candès, Jordan and Lei 2021, arXiv 2110.01052): with
probability 1 - DELTA over the images that it was calibrated on, at most the asked share of the answers is wrong. A
threshold is tested by the error rate among what it answers: of these answers the number of wrong ones is binomial, so
that its exact tail is a valid p-value. Thresholds are tested one after the other from the strictest to the mildest, up
to the first that fails (their fixed-sequence testing): no threshold pays for the others.

Scores are log-odds of the answer's probability, higher for surer.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.binomial import tail

LEVELS = (0.01, 0.02, 0.05, 0.1)
"""Shares of wrong answers that are promised; fixed before any data is seen."""
DELTA = 0.1  # of all calibrations, those whose promise may be broken
GRID = np.arange(1700, -1701, -1) / 100
"""Thresholds in the order of testing, fixed before any data is seen."""
TOLERATED = (3, 2, 1, 0)  # wrong answers that the first test allows, if so the images for it are at hand
MOST_TIMES = 1000  # more images than this many times those at hand are no advice
LOST = 0.02  # of the answers, that early refusal may cost

Floats = NDArray[np.float64]


@lru_cache(maxsize=1000)
def fewest(wrong: int, level: float, delta: float = DELTA) -> int:
    """Return the least number of answers of which this many may be wrong, so that the test is passed."""
    low, high = wrong, math.ceil(16 + 8 * (wrong - math.log(delta)) / level)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if tail(wrong, middle, level) <= delta else (middle, high)
    return high


def counts(scores: Floats, wrong: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many answers each threshold of GRID gives, and how many of these are wrong; -inf is never given."""
    all_of, wrong_of = np.sort(scores), np.sort(scores[wrong])
    return (
        len(all_of) - np.searchsorted(all_of, GRID, side="left"),
        len(wrong_of) - np.searchsorted(wrong_of, GRID, side="left"),
    )


def safe_threshold(scores: Floats, wrong: NDArray[np.bool_], level: float, delta: float = DELTA) -> float | None:
    """Return the mildest threshold at which at most `level` of the answers are wrong; None if none can be promised.

    scores: (n,), -inf for what is refused anyway; wrong: (n,). Neither may come from images that the models'
    temperatures or the policy were fitted on, and images that are nearly the same count once. An answer is given if its
    score is at least the threshold. delta: of all calibrations, the share in which the promise may be broken.

    The first test is that of the strictest threshold whose answers suffice for the test even if some of them are wrong
    (TOLERATED, as far as half of the images allow). Scores alone decide where that is. The promise stays exact if surer
    answers are not wrong more often: a later start only adds answers that are wrong more often, so that the test is
    harder to pass.
    """
    answered, errors = counts(scores, wrong)
    return _mildest(answered, errors, level, delta, len(scores))


def _mildest(
    answered: NDArray[np.int64], errors: NDArray[np.int64], level: float, delta: float, n: int
) -> float | None:
    """Return the last threshold of GRID before the first that fails. n: images; they alone decide the first test."""
    least = next((few for few in (fewest(c, level, delta) for c in TOLERATED) if few <= n / 2), fewest(0, level, delta))
    threshold = None
    for place in np.flatnonzero(answered >= least).tolist():
        if tail(int(errors[place]), int(answered[place]), level) > delta:
            break
        threshold = float(GRID[place])
    return threshold


def naive_threshold(scores: Floats, wrong: NDArray[np.bool_], level: float) -> float | None:
    """Return the mildest threshold at which at most `level` of these answers were wrong, which promises nothing."""
    answered, errors = counts(scores, wrong)
    places = np.flatnonzero((answered > 0) & (errors <= level * answered))
    return float(GRID[places[-1]]) if len(places) else None


def images_needed(scores: Floats, wrong: NDArray[np.bool_], level: float, delta: float = DELTA) -> int | None:
    """Return how many images like these a promise would need; None if no number is likely to do.

    The same shares of answers and errors are taken of 1.1 times as many, and so on, until one passes the test.
    """
    answered, errors = counts(scores, wrong)
    n, times = len(scores), 1.0
    while times <= MOST_TIMES:
        more = np.floor(times * answered).astype(np.int64)
        if _mildest(more, np.ceil(times * errors).astype(np.int64), level, delta, int(times * n)) is not None:
            return math.ceil(times * n)
        times *= 1.1
    return None


def early_threshold(look: Floats, final: Floats, threshold: float) -> float | None:
    """Return below which score after a cascade's first model the request is refused at once; None: never.

    look: (n,), the scores there, NaN for images that did not go on from it. final: (n,), the scores of the answers. Of
    the images that the threshold answers, at most LOST are refused early. Whether answers are right is not looked at,
    so that the promise can be tested on the same images.
    """
    went_on, given = look[~np.isnan(look)], final >= threshold
    would_answer = np.sort(look[given & ~np.isnan(look)])
    spare = int(LOST * given.sum())
    if spare >= len(would_answer):
        return float(np.nextafter(went_on.max(), np.inf))  # all that go on from here would be refused
    limit = float(would_answer[spare])
    return limit if (went_on < limit).any() else None
