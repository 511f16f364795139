"""What the owner wants of a policy, which of several operating points gives it, and when one policy is better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

TOLERATED_POINTS = 0.5  # of accuracy: to lose less than this counts as no less accurate (theta of section 3.2)
SURE = 1.96  # standard errors: 95 % two-sided
SPARE = 0.5  # standard errors: of accuracy kept by so much here the odds are two to one that it is kept elsewhere


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What one way to choose gives on n photographs: correct (n,) bool, time_ms (n,) float64."""

    correct: NDArray[np.bool_]
    time_ms: NDArray[np.float64]

    def of(self, rows: NDArray[np.bool_]) -> Outcomes:
        """The same on some of the photographs."""
        return Outcomes(self.correct[rows], self.time_ms[rows])


@dataclass(frozen=True)
class Goal:
    """Least time for the rival's accuracy, unless a limit is given.

    max_time_ms: the most accurate within this mean time. min_accuracy: the fastest of at least this share of right
    answers. Both: the fastest of those that keep both.
    """

    objective: Literal["time", "energy"] = "time"
    max_time_ms: float | None = None
    min_accuracy: float | None = None

    def best(self, points: Sequence[Outcomes], rival: Outcomes) -> int:
        """The place of the point that serves the goal best; the rival is the best single model.

        Where accuracy is wanted, points that keep it by half a standard error are preferred: what was barely enough
        here is barely too little on other photographs half of the time.
        """
        accuracy = np.array([point.correct.mean() for point in points])
        time_ms = np.array([point.time_ms.mean() for point in points])
        allowed = np.ones(len(points), bool) if self.max_time_ms is None else time_ms <= self.max_time_ms
        if not allowed.any():
            return int(time_ms.argmin())
        if self.max_time_ms is not None and self.min_accuracy is None:
            return _first_best(allowed, accuracy, -time_ms)
        if self.min_accuracy is None:
            gains = [difference(point.correct, rival.correct) for point in points]
            # Nothing is as accurate as a model that gave the labels: a little disagreement is tolerated then.
            tolerated = TOLERATED_POINTS / 100 if rival.correct.all() else 0.0
            spare = np.array([mean + tolerated - SPARE * error for mean, error in gains])
            enough = np.array([mean + tolerated for mean, _ in gains])
        else:
            enough = accuracy - self.min_accuracy
            spare = enough - SPARE * np.sqrt(accuracy * (1 - accuracy) / len(rival.correct))
        for margin in (spare, enough):
            if (allowed & (margin >= 0)).any():
                return _first_best(allowed & (margin >= 0), -time_ms, accuracy)
        return _first_best(allowed, accuracy, -time_ms)

    def compare(self, candidate: Outcomes, rival: Outcomes) -> tuple[bool, str]:
        """Whether the candidate is better than the rival by more than the noise, and the reason in words."""
        gain, gain_error = accuracy_gain(candidate, rival)
        saving, saving_error = difference(rival.time_ms, candidate.time_ms)
        points = f"{100 * gain:+.2f} points of accuracy (95 % within {100 * SURE * gain_error:.2f})"
        ratio = candidate.time_ms.mean() / rival.time_ms.mean()
        said = f"{points} in {ratio:.2f} times the time"
        if self.max_time_ms is not None and candidate.time_ms.mean() > self.max_time_ms:
            return False, f"{said}, over the {self.max_time_ms:g} ms allowed"
        if self.min_accuracy is not None and candidate.correct.mean() < self.min_accuracy:
            return False, f"{said}, under the accuracy of {100 * self.min_accuracy:g} % wanted"
        is_faster = saving > SURE * saving_error
        is_as_good = self.min_accuracy is not None or 100 * (gain - SURE * gain_error) >= -TOLERATED_POINTS
        if is_faster and is_as_good and self.max_time_ms is None:
            return True, said
        if gain > SURE * gain_error and (self.max_time_ms is not None or not saving < -SURE * saving_error):
            return True, said
        if is_faster and not is_as_good and gain > -SURE * gain_error:
            return False, f"{said}: {len(rival.correct)} photographs are too few to tell that it is as accurate"
        return False, f"{said}, which is not better by more than the noise"


def accuracy_gain(ours: Outcomes, theirs: Outcomes) -> tuple[float, float]:
    """Mean and standard error of the difference in right answers, as shares.

    The error is at least 1/n: that no answer differed on n photographs does not say that none ever will.
    """
    gain, error = difference(ours.correct, theirs.correct)
    return gain, max(error, 1 / len(ours.correct))


def difference(
    ours: NDArray[np.bool_] | NDArray[np.float64], theirs: NDArray[np.bool_] | NDArray[np.float64]
) -> tuple[float, float]:
    """Mean and standard error of the difference, photograph by photograph: both (n,)."""
    each = ours.astype(np.float64) - theirs.astype(np.float64)
    return float(each.mean()), float(each.std(ddof=1) / np.sqrt(len(each))) if len(each) > 1 else float("inf")


def _first_best(allowed: NDArray[np.bool_], *keys: NDArray[np.float64]) -> int:
    """The place of the largest first key, of equals the largest second, among those allowed."""
    places: list[int] = np.flatnonzero(allowed).tolist()
    return max(places, key=lambda place: tuple(float(key[place]) for key in keys))
