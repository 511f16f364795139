"""The owner's goal: it selects an operating point, and decides whether one policy may replace another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.record.recording import Objective
from jetsel.calibrate.record.replay import Outcomes

MAY_LOSE_POINTS = 0.5  # of accuracy
SURELY_LOST = 2.0  # times MAY_LOSE_POINTS: largest loss at the lower end of the confidence interval
LEAST_SAVING = 0.05  # of time or energy: with noisy clocks and meters, a policy seems to save a little over itself
SURE = 1.645  # standard errors: 95 % one-sided
SPARE = 0.5  # standard errors: a limit kept by this margin is kept on other images with odds of two to one


@dataclass(frozen=True)
class Goal:
    """What to optimize; by default, the least time or energy at the accuracy of the reference model.

    max_time_ms, max_energy_mj: choose the most accurate policy within these means. min_accuracy: choose the cheapest
    policy with at least this accuracy, from 0 to 1, within the other limits if there are any. may_lose_points: accuracy
    that a policy may lose, in percentage points.
    """

    objective: Objective = "time"
    max_time_ms: float | None = None
    min_accuracy: float | None = None
    max_energy_mj: float | None = None
    may_lose_points: float = MAY_LOSE_POINTS

    @property
    def needs_energy(self) -> bool:
        """Whether the goal can only be applied to measured energy."""
        return self.objective == "energy" or self.max_energy_mj is not None

    @property
    def is_limited(self) -> bool:
        """Whether mean time or energy is limited: accuracy is then optimized, unless min_accuracy is set too."""
        return self.max_time_ms is not None or self.max_energy_mj is not None

    def ratio_to_limit(self, outcomes: Outcomes, standard_errors: float = 0.0) -> float:
        """Return the mean cost divided by its limit, the larger ratio of time and energy; 0 without limits.

        Above 1, a limit is exceeded. standard_errors: how many of them are added to the mean, as a margin.
        """
        limits: tuple[tuple[Objective, float | None], ...] = ("time", self.max_time_ms), ("energy", self.max_energy_mj)
        ratios = []
        for cost, most in ((outcomes.cost(what), most) for what, most in limits if most is not None):
            margin = standard_errors * standard_error(cost, outcomes.groups) if standard_errors else 0.0
            ratios.append((float(cost.mean()) + margin) / most)
        return max(ratios, default=0.0)

    def keeps(self, outcomes: Outcomes) -> bool:
        """Whether the outcomes are within every limit."""
        accurate = self.min_accuracy is None or bool(outcomes.correct.mean() >= self.min_accuracy)
        return accurate and self.ratio_to_limit(outcomes) <= 1

    def choose_point(self, points: Sequence[Outcomes], reference: Outcomes) -> int:
        """Return the index of the operating point that serves the goal best. points: see `cheapest_as_accurate`.

        If no point is sure to keep the reference's accuracy, return the most accurate one that costs no more.
        """
        if self.is_limited or self.min_accuracy is not None:
            return self.within_limits(points)
        place = self.cheapest_as_accurate(points, reference)
        if place is not None:
            return place
        accuracy, cost = self._figures(points)
        affordable = cost <= reference.cost(self.objective).mean()
        return _first_best(affordable if affordable.any() else cost == cost.min(), accuracy, -cost)

    def cheapest_as_accurate(self, points: Sequence[Outcomes], reference: Outcomes) -> int | None:
        """Return the index of the cheapest point that is sure to keep the reference's accuracy, None if none is.

        points: sorted by cost, so that neighbouring points behave alike. The point may lose at most `may_lose_points`
        on these images, and with confidence at most twice that: a test of non-inferiority (Schuirmann, J.
        Pharmacokinet. Biopharm. 15, 1987). The cheapest of many points is a lucky one, so the test averages each point
        with its neighbours (`python -m calibration.decisions` counts the failures). Each kind of size must pass alone.
        """
        accuracy, cost = self._figures(points)
        keeps = self._as_accurate(points, reference)
        for kind in reference.kinds():
            keeps &= self._as_accurate([point.take(kind) for point in points], reference.take(kind))
        saves = cost <= (1 - LEAST_SAVING) * reference.cost(self.objective).mean()
        return _first_best(keeps & saves, -cost, accuracy) if (keeps & saves).any() else None

    def _as_accurate(self, points: Sequence[Outcomes], reference: Outcomes) -> NDArray[np.bool_]:
        """Return which points pass the test of `cheapest_as_accurate` on these images, (points,) bool."""
        accuracy, _ = self._figures(points)
        gain = accuracy - reference.correct.mean()
        padded = np.pad(gain, 1, mode="edge")
        smooth = (padded[:-2] + padded[1:-1] + padded[2:]) / 3
        error = np.array([_gain(point, reference)[1] for point in points])
        margin = self.may_lose_points / 100
        is_accurate: NDArray[np.bool_] = (gain >= -margin) & (smooth + SURELY_LOST * margin >= SURE * error)
        return is_accurate

    def within_limits(self, points: Sequence[Outcomes]) -> int:
        """Return the index of the point that serves a goal with limits best.

        Points that keep the limits by half a standard error come first: a point that barely keeps a limit here exceeds
        it on every second set of other images.
        """
        accuracy, cost = self._figures(points)
        ratios = np.array([self.ratio_to_limit(point) for point in points])
        if not (ratios <= 1).any():
            return int(ratios.argmin())
        sure = np.array([self.ratio_to_limit(point, SPARE) <= 1 for point in points])
        allowed = sure if sure.any() else ratios <= 1
        if self.min_accuracy is None:
            return _first_best(allowed, accuracy, -cost)
        above = accuracy - self.min_accuracy
        surely_above = above - SPARE * np.sqrt(accuracy * (1 - accuracy) / len(points[0].correct))
        for margin in (surely_above, above):
            if (allowed & (margin >= 0)).any():
                return _first_best(allowed & (margin >= 0), -cost, accuracy)
        return _first_best(allowed, accuracy, -cost)

    def _figures(self, points: Sequence[Outcomes]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the accuracy and the mean cost of each point, (points,) each."""
        accuracy = np.array([point.correct.mean() for point in points])
        return accuracy, np.array([point.cost(self.objective).mean() for point in points])

    def compare(self, candidate: Outcomes, rival: Outcomes) -> tuple[bool, str]:
        """Return whether the candidate may replace the rival, and the reason in words.

        Without limits there are two cases. Either the candidate saves at least 5 % of the cost, beyond the noise, and
        is not inferior: it loses at most `may_lose_points`, and with 95 % confidence, one-sided, at most twice that. Or
        it is significantly more accurate, and not significantly more expensive.

        The error of the accuracy is at least 1/n, because equal answers on n images may differ on others.
        """
        gain, error = _gain(candidate, rival)
        ours, theirs = candidate.cost(self.objective), rival.cost(self.objective)
        saving, saving_error = difference(theirs, ours, rival.groups)
        ratio = float(ours.mean() / theirs.mean())
        comparison = _in_words(gain, error, ratio, self.objective)
        if not self.keeps(candidate):
            return False, f"{comparison}; it exceeds your limit of {self._allowed()}"
        if not self.keeps(rival):
            return True, f"it is the only one within your limit of {self._allowed()}; {comparison}"
        is_right_more = gain > SURE * error
        if is_right_more and (self.is_limited or not saving < -SURE * saving_error):
            return True, comparison
        if saving > SURE * saving_error:
            if ratio > 1 - LEAST_SAVING:
                return False, f"{comparison}; a saving below {100 * LEAST_SAVING:.0f} % may be measurement noise"
            if self.min_accuracy is not None:
                return True, comparison
            lost = self._lost(candidate, rival, gain, error)
            return (True, comparison) if lost is None else (False, f"{comparison}; {lost}")
        if is_right_more:  # more accurate and more expensive, both significantly: more images would not help
            limit = "--max-time-ms" if self.objective == "time" else "--max-energy-mj"
            return False, f"{comparison}; set --min-accuracy or {limit} to choose between the two"
        return False, f"{comparison}, which may be chance{_more(rival, gain, error)}"

    def _lost(self, candidate: Outcomes, rival: Outcomes, gain: float, error: float) -> str | None:
        """Return, in words, what accuracy the candidate may lose beyond `may_lose_points`; None if it is not inferior.

        gain, error: of its accuracy.
        """
        margin = self.may_lose_points / 100
        if 100 * gain < -self.may_lose_points:
            return f"it may lose {self.may_lose_points:g} points (--may-lose)"
        for kind in rival.kinds():
            loss, error_of_kind = _gain(rival.take(kind), candidate.take(kind))
            if loss > margin or loss + SURE * error_of_kind > SURELY_LOST * margin:
                which = f"the {100 * kind.mean():.0f} % of the images that are of one size"
                return f"on {which} it may lose more than that: {100 * loss:.2f} points"
        surplus = gain + SURELY_LOST * margin
        if surplus >= SURE * error:
            return None
        too_much = f"a loss of more than {SURELY_LOST * self.may_lose_points:.2f} points"
        too_few = f"{len(rival.correct):,} images are not enough to rule out {too_much}{_more(rival, surplus, error)}"
        return f"{too_few}, or accept a larger loss with --may-lose"

    def reference(self, models: Sequence[Outcomes]) -> int:
        """Return the index of the single model that policies are compared with.

        It is the most expensive model, which answers before a calibration exists, unless another is more accurate with
        95 % confidence in all comparisons together (Bonferroni). The most accurate model on the same images would be
        the luckiest of equals, so its accuracy would be overestimated, and too strict a reference.
        """
        sure = NormalDist().inv_cdf(1 - 0.05 / max(1, len(models) - 1))
        costs = [float(model.cost(self.objective).mean()) for model in models]
        gains = [[_gain(other, model) for other in models] for model in models]
        fair = [max(gain - sure * error for gain, error in of_one) <= 0 for of_one in gains]
        return max(range(len(models)), key=lambda place: (fair[place], costs[place]))

    def _allowed(self) -> str:
        limits = (self.max_time_ms, "ms"), (self.max_energy_mj, "mJ")
        accuracy = [] if self.min_accuracy is None else [f"at least {100 * self.min_accuracy:g} % right"]
        return " and ".join([*(f"{limit:g} {unit}" for limit, unit in limits if limit is not None), *accuracy])


def _gain(candidate: Outcomes, rival: Outcomes) -> tuple[float, float]:
    """Return the gain of accuracy, from -1 to 1, and its standard error, which is at least 1/n."""
    gain, error = difference(candidate.correct, rival.correct, rival.groups)
    return gain, max(error, 1 / len(rival.correct))


def _in_words(gain: float, error: float, ratio: float, objective: Objective) -> str:
    """Return the comparison in words. gain, error: of accuracy, as shares. ratio: of the mean costs."""
    saved, low = round(100 * (1 - ratio)), 100 * (gain - SURE * error)
    cost = f"{abs(saved)} % {'less' if saved > 0 else 'more'}" if saved else "as much"
    points = f"{abs(100 * gain):.2f} points {'less' if gain < 0 else 'more'} accurate on these images"
    surely = f"gains at least {low:.2f} points" if low > 0 else f"loses at most {-low:.2f} points"
    return f"it takes {cost} {objective}, is {points}, and {surely} (95 % confidence)"


def _more(rival: Outcomes, gain: float, error: float) -> str:
    """Return, in words, how many more images would make this gain significant: errors fall as 1 / sqrt(n)."""
    if gain <= 0:
        return ""
    photographs = len(rival.correct) * ((SURE * error / gain) ** 2 - 1)
    return f"; add about {max(10, round(photographs, 1 - len(str(int(photographs))))):,.0f} images"


def difference(
    ours: NDArray[np.bool_] | NDArray[np.float64],
    theirs: NDArray[np.bool_] | NDArray[np.float64],
    groups: NDArray[np.int64] | None = None,
) -> tuple[float, float]:
    """Return the mean and standard error of the paired differences ours - theirs; all arrays are (n,)."""
    each = ours.astype(np.float64) - theirs.astype(np.float64)
    return float(each.mean()), standard_error(each, groups)


def standard_error(values: NDArray[np.float64], groups: NDArray[np.int64] | None) -> float:
    """Return the standard error of the mean of (n,) values; infinite for one. groups: see Outcomes.

    Groups are clusters: their sums are independent, but their members may depend on each other (Cochran, Sampling
    Techniques, 1977, section 9A.2).
    """
    sums = values - values.mean()
    if groups is not None:
        sums = np.bincount(groups, sums)[np.bincount(groups) > 0]
    count = len(sums)
    return float(np.sqrt((sums @ sums) * count / (count - 1))) / len(values) if count > 1 else float("inf")


def _first_best(allowed: NDArray[np.bool_], *keys: NDArray[np.float64]) -> int:
    """Return the index of the largest first key among the allowed; the second key breaks ties."""
    places: list[int] = np.flatnonzero(allowed).tolist()
    return max(places, key=lambda place: tuple(float(key[place]) for key in keys))
