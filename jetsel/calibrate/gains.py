"""What cascades gain by more models: in the same mean time, and in time where they are as accurate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from jetsel.calibrate.findings import Interval
from jetsel.calibrate.held_out import fit_temperatures
from jetsel.calibrate.metrics import mean_interval, undominated
from jetsel.calibrate.recording import Recording
from jetsel.premodel.cascades import BUDGETS, Fitted, Outputs, fit_cascades, judge, log_softmax

SHARES = (1.0, 0.5, 0.25)
"""Of the time of the best single model without candidates: the mean times at which cascades are compared."""
TOLERANCE = 0.005
"""Of the photographs: a cascade that is right on so much less where it was fitted counts as accurate."""


class Gain(Struct, frozen=True):
    """The best cascades without and with more models within one mean time, on photographs that fitted neither.

    points: with less without. time_ratio: of the fastest cascade with them that is as accurate where it was fitted, to
    the fastest without; time_points: what these two are right on here, with less without. Intervals are of paired
    differences, 95 %.
    rungs: of the cascade with more models.
    """

    budget_ms: float
    before: float
    after: float
    before_ms: float
    after_ms: float
    points: float
    points_interval: Interval
    time_ratio: float
    time_points: float
    time_interval: Interval
    rungs: list[str]


@dataclass(frozen=True, eq=False)
class Cascade:
    """A cascade over named models, as it was fitted."""

    models: tuple[str, ...]
    fitted: Fitted
    temperatures: Mapping[str, float]
    costs_ms: Mapping[str, float]

    def on(self, recording: Recording) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Return for each photograph of a recording whether it is right, and what it takes in ms, both (n,)."""
        outputs = _outputs(recording, self.models, self.temperatures, self.costs_ms)
        correct, ran = judge(self.fitted, outputs)
        return correct, ran @ outputs.costs

    @property
    def rungs(self) -> list[str]:
        """The models that run, in their order."""
        return [self.models[rung] for rung in self.fitted.rungs]


def budgets_ms(recording: Recording, served: Iterable[str]) -> list[float]:
    """Return the mean times at which cascades are compared."""
    best_ms = front(recording, served)[-1][0]
    return [share * best_ms for share in SHARES]


def front(recording: Recording, models: Iterable[str]) -> list[tuple[float, float, str]]:
    """Return mean ms, share right and name of the models that none beats in both, fastest first."""
    shares = dict(zip(recording.models, recording.right("top1").mean(axis=0).tolist(), strict=True))
    return undominated((recording.costs_ms[name], shares[name], name) for name in models)


def gains(recording: Recording, served: Sequence[str], more: Sequence[str], fold_of: NDArray[np.int64]) -> list[Gain]:
    """Compare at each budget by cross-validation; fold_of: (n,)."""
    budgets = budgets_ms(recording, served)
    found = [np.zeros((4, 2, len(fold_of))) for _ in budgets]  # the four of `cascades`; right, ms; photographs
    for fold in np.unique(fold_of):
        held = np.flatnonzero(fold_of == fold)
        other = recording.take(held)
        for place, four in enumerate(cascades(recording.take(np.flatnonzero(fold_of != fold)), served, more, budgets)):
            for row, cascade in enumerate(four):
                found[place][row][:, held] = cascade.on(other)
    whole = cascades(recording, served, more, budgets)
    return [_gain(ms, one, four[1].rungs) for ms, one, four in zip(budgets, found, whole, strict=True)]


def gains_on(other: Recording, fit: Recording, served: Sequence[str], more: Sequence[str]) -> list[Gain]:
    """Compare what was fitted on one recording on another, with the times of the first."""
    budgets = budgets_ms(fit, served)
    return [
        _gain(ms, np.array([cascade.on(other) for cascade in four]), four[1].rungs)
        for ms, four in zip(budgets, cascades(fit, served, more, budgets), strict=True)
    ]


def cascades(
    train: Recording, served: Sequence[str], more: Sequence[str], budgets: Sequence[float]
) -> list[tuple[Cascade, ...]]:
    """Return for each mean time the best cascade without and with more models, and the fastest of each as accurate.

    As accurate as the best one without, where they are fitted. Those without are among those with: of many models,
    fewer rungs are tried.
    """
    without = _tried(train, served, budgets)
    beside = [*without, *_tried(train, [*served, *more], budgets)]
    found = []
    for budget_ms in budgets:
        ours, theirs = _best(without, budget_ms), _best(beside, budget_ms)
        due = ours.on(train)[0].mean() - TOLERANCE
        fast = [min((one for one in of if one[0] >= due), key=lambda one: one[1])[2] for of in (without, beside)]
        found.append((ours, theirs, *fast))
    return found


def _best(tried: Sequence[tuple[float, float, Cascade]], budget_ms: float) -> Cascade:
    """Return the most accurate within a mean time, of equals the first, or the fastest where none is."""
    within = [one for one in tried if one[1] <= budget_ms]
    return max(within, key=lambda one: one[0])[2] if within else min(tried, key=lambda one: one[1])[2]


def _tried(train: Recording, names: Sequence[str], budgets: Sequence[float]) -> list[tuple[float, float, Cascade]]:
    """Return share right, mean ms and cascade of the best of these models at many mean times, `budgets` among them.

    Models that another one beats in time and accuracy are no rungs.
    """
    models = tuple(name for _, _, name in front(train, names))
    temperatures = fit_temperatures(train.of_models(models))
    outputs = _outputs(train, models, temperatures, train.costs_ms)
    shares = [*BUDGETS, *(ms / outputs.costs.max() for ms in budgets)]
    tried = []
    for fitted in dict.fromkeys(fit_cascades(outputs, shares)):
        correct, ran = judge(fitted, outputs)
        cascade = Cascade(models, fitted, temperatures, train.costs_ms)
        tried.append((float(correct.mean()), float((ran @ outputs.costs).mean()), cascade))
    return tried


def _outputs(
    recording: Recording, models: Sequence[str], temperatures: Mapping[str, float], costs_ms: Mapping[str, float]
) -> Outputs:
    logs = [log_softmax(recording.logits[recording.models.index(name)], temperatures[name]) for name in models]
    costs = np.array([costs_ms[name] for name in models])
    return Outputs(logs, recording.classes, costs, "top1", averaged=False)


def _gain(budget_ms: float, found: NDArray[np.float64], rungs: list[str]) -> Gain:
    """found: (4, 2, n), the four of `cascades`; right or not, and ms; by photograph."""
    without, beside, fast_without, fast_beside = found
    more, same = 100 * (beside[0] - without[0]), 100 * (fast_beside[0] - fast_without[0])
    return Gain(
        budget_ms,
        float(without[0].mean()),
        float(beside[0].mean()),
        float(without[1].mean()),
        float(beside[1].mean()),
        float(more.mean()),
        mean_interval(more),
        float(fast_beside[1].mean() / fast_without[1].mean()),
        float(same.mean()),
        mean_interval(same),
        rungs,
    )
