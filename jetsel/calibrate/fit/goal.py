"""The owner's goal: it selects an operating point, and decides whether one policy may replace another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.record.recording import Objective
from jetsel.calibrate.record.replay import Outcomes

MAY_LOSE_POINTS = 0.5  # percentage points of accuracy that a policy may lose on the images at hand
SURELY_LOST = 2.0  # times MAY_LOSE_POINTS: largest loss at the lower end of the confidence interval
LEAST_SAVING = 0.05  # of time or energy: with noisy clocks and meters, a policy seems to save a little over itself
ONE_SIDED_95 = 1.645  # standard errors: 95 % one-sided
SAFETY_MARGIN = 0.5  # standard errors: a limit kept by this margin is kept on other images with odds of two to one


@dataclass(frozen=True)
class Goal:
    """What to optimize; by default, the least time or energy at the accuracy of the reference model."""

    objective: Objective = "time"  # the cost to minimize
    max_time_ms: float | None = None  # limit of the mean: choose the most accurate policy within it
    min_accuracy: float | None = None  # 0 to 1: choose the cheapest policy above it, within the other limits
    max_energy_mj: float | None = None  # limit of the mean, as max_time_ms
    may_lose_points: float = MAY_LOSE_POINTS  # percentage points of accuracy that a policy may lose

    @property
    def needs_energy(self) -> bool:
        """Whether the goal can only be applied to measured energy."""
        return self.objective == "energy" or self.max_energy_mj is not None

    @property
    def is_limited(self) -> bool:
        """Whether mean time or energy is limited: accuracy is then optimized, unless min_accuracy is set too."""
        return self.max_time_ms is not None or self.max_energy_mj is not None

    def ratio_to_limit(self, outcomes: Outcomes, standard_errors: float = 0.0) -> float:
        """Return mean time or energy divided by its limit, whichever ratio is larger; 0 without limits.

        Above 1, a limit is exceeded. standard_errors: number of standard errors to add to the mean, as a margin.
        """
        limits: tuple[tuple[Objective, float | None], ...] = ("time", self.max_time_ms), ("energy", self.max_energy_mj)
        ratios = []
        for cost, limit in ((outcomes.cost(objective), limit) for objective, limit in limits if limit is not None):
            margin = standard_errors * standard_error(cost, outcomes.groups) if standard_errors else 0.0
            ratios.append((float(cost.mean()) + margin) / limit)
        return max(ratios, default=0.0)

    def is_within_limits(self, outcomes: Outcomes) -> bool:
        """Whether mean time and energy are within their limits, and accuracy is at least `min_accuracy`."""
        accurate = self.min_accuracy is None or bool(outcomes.correct.mean() >= self.min_accuracy)
        return accurate and self.ratio_to_limit(outcomes) <= 1

    def choose_point(self, points: Sequence[Outcomes], reference: Outcomes) -> int:
        """Return the index of the operating point that serves the goal best. points: of one policy, sorted by cost.

        reference: the single model whose accuracy is to be kept. If no point is sure to keep it, return the most
        accurate point that costs no more than the reference, or the cheapest point if all cost more.
        """
        if self.is_limited or self.min_accuracy is not None:
            return self.choose_within_limits(points)
        index = self.cheapest_as_accurate(points, reference)
        if index is not None:
            return index
        accuracy, cost = self._accuracies_and_costs(points)
        affordable = cost <= reference.cost(self.objective).mean()
        return _best_index(affordable if affordable.any() else cost == cost.min(), accuracy, -cost)

    def cheapest_as_accurate(self, points: Sequence[Outcomes], reference: Outcomes) -> int | None:
        """Return the index of the cheapest operating point that surely keeps the reference's accuracy, or None.

        points: sorted by cost, so that neighbouring points behave alike. The point may lose at most `may_lose_points`
        on these images, and with confidence at most twice that: a test of non-inferiority (Schuirmann, J.
        Pharmacokinet. Biopharm. 15, 1987). The cheapest of many points is a lucky one, so the test averages each point
        with its neighbours (`python -m calibration.decisions` counts the failures). Each size category must pass alone.
        """
        accuracy, cost = self._accuracies_and_costs(points)
        is_accurate = self._are_as_accurate(points, reference)
        for mask in reference.size_masks():
            is_accurate &= self._are_as_accurate([point.take(mask) for point in points], reference.take(mask))
        is_cheaper = cost <= (1 - LEAST_SAVING) * reference.cost(self.objective).mean()
        return _best_index(is_accurate & is_cheaper, -cost, accuracy) if (is_accurate & is_cheaper).any() else None

    def _are_as_accurate(self, points: Sequence[Outcomes], reference: Outcomes) -> NDArray[np.bool_]:
        """Return which points lose no more accuracy than allowed (see `cheapest_as_accurate`), (points,) bool."""
        accuracy, _ = self._accuracies_and_costs(points)
        gain = accuracy - reference.correct.mean()
        padded = np.pad(gain, 1, mode="edge")
        smooth = (padded[:-2] + padded[1:-1] + padded[2:]) / 3
        error = np.array([_accuracy_gain(point, reference)[1] for point in points])
        margin = self.may_lose_points / 100
        is_accurate: NDArray[np.bool_] = (gain >= -margin) & (smooth + SURELY_LOST * margin >= ONE_SIDED_95 * error)
        return is_accurate

    def choose_within_limits(self, points: Sequence[Outcomes]) -> int:
        """Return the index of the most accurate point within the limits, or of the cheapest above `min_accuracy`.

        If none is within the limits, return the one nearest to them. Points that keep the limits by half a standard
        error come first: a point that barely keeps a limit here exceeds it on every second set of other images.
        """
        accuracy, cost = self._accuracies_and_costs(points)
        ratios = np.array([self.ratio_to_limit(point) for point in points])
        if not (ratios <= 1).any():
            return int(ratios.argmin())
        is_safe = np.array([self.ratio_to_limit(point, SAFETY_MARGIN) <= 1 for point in points])
        allowed = is_safe if is_safe.any() else ratios <= 1
        if self.min_accuracy is None:
            return _best_index(allowed, accuracy, -cost)
        above = accuracy - self.min_accuracy
        safely_above = above - SAFETY_MARGIN * np.sqrt(accuracy * (1 - accuracy) / len(points[0].correct))
        for margin in (safely_above, above):
            if (allowed & (margin >= 0)).any():
                return _best_index(allowed & (margin >= 0), -cost, accuracy)
        return _best_index(allowed, accuracy, -cost)

    def _accuracies_and_costs(self, points: Sequence[Outcomes]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the accuracies and the mean costs of the operating points, (points,) each."""
        accuracy = np.array([point.correct.mean() for point in points])
        return accuracy, np.array([point.cost(self.objective).mean() for point in points])

    def compare(self, candidate: Outcomes, rival: Outcomes) -> tuple[bool, str]:
        """Return whether the candidate may replace the rival, and the reason in words.

        Without limits there are two cases. Either the candidate saves at least 5 % of the cost, beyond the noise, and
        is not inferior: it loses at most `may_lose_points`, and with 95 % confidence, one-sided, at most twice that. Or
        it is significantly more accurate, and not significantly more expensive.

        The error of the accuracy is at least 1/n, because equal answers on n images may differ on others.
        """
        gain, error = _accuracy_gain(candidate, rival)
        candidate_cost, rival_cost = candidate.cost(self.objective), rival.cost(self.objective)
        saving, saving_error = paired_difference(rival_cost, candidate_cost, rival.groups)
        ratio = float(candidate_cost.mean() / rival_cost.mean())
        comparison = _comparison_in_words(gain, error, ratio, self.objective)
        if not self.is_within_limits(candidate):
            return False, f"{comparison}; it exceeds your limit of {self._limits_in_words()}"
        if not self.is_within_limits(rival):
            return True, f"it is the only one within your limit of {self._limits_in_words()}; {comparison}"
        is_more_accurate = gain > ONE_SIDED_95 * error
        if is_more_accurate and (self.is_limited or not saving < -ONE_SIDED_95 * saving_error):
            return True, comparison
        if saving > ONE_SIDED_95 * saving_error:
            if ratio > 1 - LEAST_SAVING:
                return False, f"{comparison}; a saving below {100 * LEAST_SAVING:.0f} % may be measurement noise"
            if self.min_accuracy is not None:
                return True, comparison
            lost = self._possible_loss(candidate, rival, gain, error)
            return (True, comparison) if lost is None else (False, f"{comparison}; {lost}")
        if is_more_accurate:  # more accurate and more expensive, both significantly: more images would not help
            limit = "--max-time-ms" if self.objective == "time" else "--max-energy-mj"
            return False, f"{comparison}; set --min-accuracy or {limit} to choose between the two"
        return False, f"{comparison}, which may be chance{_images_to_add(rival, gain, error)}"

    def _possible_loss(self, candidate: Outcomes, rival: Outcomes, gain: float, error: float) -> str | None:
        """Return in words how the candidate may lose more accuracy than allowed; None if it is not inferior.

        gain: its accuracy less the rival's, from -1 to 1. error: the standard error of the gain.
        """
        margin = self.may_lose_points / 100
        if 100 * gain < -self.may_lose_points:
            return f"it may lose {self.may_lose_points:g} points (--may-lose)"
        for mask in rival.size_masks():
            loss, category_error = _accuracy_gain(rival.take(mask), candidate.take(mask))
            if loss > margin or loss + ONE_SIDED_95 * category_error > SURELY_LOST * margin:
                described = f"the {100 * mask.mean():.0f} % of the images that are of one size"
                return f"on {described} it may lose more than that: {100 * loss:.2f} points"
        surplus = gain + SURELY_LOST * margin
        if surplus >= ONE_SIDED_95 * error:
            return None
        too_much = f"a loss of more than {SURELY_LOST * self.may_lose_points:.2f} points"
        too_few = f"{len(rival.correct):,} images are not enough to rule out {too_much}"
        return f"{too_few}{_images_to_add(rival, surplus, error)}, or accept a larger loss with --may-lose"

    def reference(self, models: Sequence[Outcomes]) -> int:
        """Return the index of the single model that policies are compared with. models: outcomes of each model.

        It is the most expensive model, which answers before a calibration exists, unless another is more accurate with
        95 % confidence in all comparisons together (Bonferroni). The most accurate model on the same images would be
        the luckiest of equals, so its accuracy would be overestimated, and too strict a reference.
        """
        required_errors = NormalDist().inv_cdf(1 - 0.05 / max(1, len(models) - 1))
        costs = [float(model.cost(self.objective).mean()) for model in models]
        gains = [[_accuracy_gain(other, model) for other in models] for model in models]
        is_unbeaten = [max(gain - required_errors * error for gain, error in rivals) <= 0 for rivals in gains]
        return max(range(len(models)), key=lambda index: (is_unbeaten[index], costs[index]))

    def _limits_in_words(self) -> str:
        limits = (self.max_time_ms, "ms"), (self.max_energy_mj, "mJ")
        accuracy = [] if self.min_accuracy is None else [f"at least {100 * self.min_accuracy:g} % right"]
        return " and ".join([*(f"{limit:g} {unit}" for limit, unit in limits if limit is not None), *accuracy])


def _accuracy_gain(candidate: Outcomes, rival: Outcomes) -> tuple[float, float]:
    """Return the candidate's accuracy less the rival's, from -1 to 1, and its standard error, at least 1/n."""
    gain, error = paired_difference(candidate.correct, rival.correct, rival.groups)
    return gain, max(error, 1 / len(rival.correct))


def _comparison_in_words(gain: float, error: float, ratio: float, objective: Objective) -> str:
    """Return the comparison in words. gain, error: see `_accuracy_gain`. ratio: candidate's cost / rival's cost."""
    saved, low = round(100 * (1 - ratio)), 100 * (gain - ONE_SIDED_95 * error)
    cost = f"{abs(saved)} % {'less' if saved > 0 else 'more'}" if saved else "as much"
    points = f"{abs(100 * gain):.2f} points {'less' if gain < 0 else 'more'} accurate on these images"
    surely = f"gains at least {low:.2f} points" if low > 0 else f"loses at most {-low:.2f} points"
    return f"it takes {cost} {objective}, is {points}, and {surely} (95 % confidence)"


def _images_to_add(rival: Outcomes, gain: float, error: float) -> str:
    """Return in words how many more images would make this gain significant, as errors fall with 1 / sqrt(n)."""
    if gain <= 0:
        return ""
    missing_images = len(rival.correct) * ((ONE_SIDED_95 * error / gain) ** 2 - 1)
    return f"; add about {max(10, round(missing_images, 1 - len(str(int(missing_images))))):,.0f} images"


def paired_difference(
    ours: NDArray[np.bool_] | NDArray[np.float64],
    theirs: NDArray[np.bool_] | NDArray[np.float64],
    groups: NDArray[np.int64] | None = None,
) -> tuple[float, float]:
    """Return the mean and standard error of the paired differences ours - theirs; all arrays are (n,)."""
    differences = ours.astype(np.float64) - theirs.astype(np.float64)
    return float(differences.mean()), standard_error(differences, groups)


def standard_error(values: NDArray[np.float64], groups: NDArray[np.int64] | None) -> float:
    """Return the standard error of the mean of (n,) values; infinite for one value or group.

    groups: (n,), a number that near-duplicates share. Groups are clusters: their sums are independent, but their
    members may depend on each other (Cochran, Sampling Techniques, 1977, section 9A.2).
    """
    sums = values - values.mean()
    if groups is not None:
        sums = np.bincount(groups, sums)[np.bincount(groups) > 0]
    count = len(sums)
    return float(np.sqrt((sums @ sums) * count / (count - 1))) / len(values) if count > 1 else float("inf")


def _best_index(allowed: NDArray[np.bool_], *keys: NDArray[np.float64]) -> int:
    """Return the index at which `allowed` is true and the first key is largest; later keys break ties. All (p,)."""
    allowed_indices: list[int] = np.flatnonzero(allowed).tolist()
    return max(allowed_indices, key=lambda index: tuple(float(key[index]) for key in keys))
