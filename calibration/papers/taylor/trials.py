"""Ways to choose a model, learned on all folds but one and tried on that one, at the point that a wish chooses.

What is fitted on all images that are fitted on is tried on others, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from jetsel.calibrate.fit.temperature import fit_temperatures
from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import Outcomes
from jetsel.premodel import is_right


@dataclass(frozen=True, eq=False)
class Point:
    """One operating point on n images.

    ran: (n, m), which models ran, which answer together. in_doubt: (n,), left to the fallback.
    """

    ran: NDArray[np.bool_]
    in_doubt: NDArray[np.bool_]
    words: str = ""


def one_model(
    column: NDArray[np.int64], models: int, in_doubt: NDArray[np.bool_] | None = None, words: str = ""
) -> Point:
    """Return the point at which one model runs for each image: column (n,)."""
    ran = np.zeros((len(column), models), bool)
    ran[np.arange(len(column)), column] = True
    return Point(ran, np.zeros(len(column), bool) if in_doubt is None else in_doubt, words)


@dataclass(frozen=True)
class Way:
    """One way to choose. tried: learn on the first images, and return the points, always as many, on the second.

    features_ms: of the features that it reads on each image. The choice itself counts as free.
    """

    name: str
    features_ms: float
    tried: Callable[[Recording, Recording], list[Point]]


@dataclass(frozen=True)
class Wish:
    """Which operating point is wanted: chosen(points, best single model) is its place."""

    name: str
    chosen: Callable[[Sequence[Outcomes], Outcomes], int]


def as_accurate() -> Wish:
    """Least time at the accuracy of the best single model; the most accurate if none is as accurate."""

    def chosen(points: Sequence[Outcomes], best: Outcomes) -> int:
        accuracy = np.array([one.correct.mean() for one in points])
        times = np.array([one.time_ms.mean() for one in points])
        enough = min(best.correct.mean(), accuracy.max())
        return int(np.where(accuracy >= enough, times, np.inf).argmin())

    return Wish("as accurate as the best single", chosen)


def at_price(price: float) -> Wish:
    """The largest share of right answers less the price of its mean time. price: share for each ms."""

    def chosen(points: Sequence[Outcomes], _: Outcomes) -> int:
        return int(np.argmax([one.correct.mean() - price * one.time_ms.mean() for one in points]))

    return Wish("price of time", chosen)


def within(mean_ms: float, name: str) -> Wish:
    """The most accurate of those that keep a mean time; the fastest if none does."""

    def chosen(points: Sequence[Outcomes], _: Outcomes) -> int:
        times = np.array([one.time_ms.mean() for one in points])
        accuracy = np.array([one.correct.mean() for one in points])
        keeps = times <= mean_ms
        return int(np.where(keeps, accuracy, -1.0).argmax()) if keeps.any() else int(times.argmin())

    return Wish(name, chosen)


@dataclass(frozen=True, eq=False)
class Seen:
    """What a way gave on n images: ran and in_doubt as in Point.

    answered: (n,) class numbers. correct, is_top5: (n,). time_ms: (n,). points: those chosen.
    """

    ran: NDArray[np.bool_]
    in_doubt: NDArray[np.bool_]
    answered: NDArray[np.int64]
    correct: NDArray[np.bool_]
    is_top5: NDArray[np.bool_]
    time_ms: NDArray[np.float64]
    points: tuple[str, ...]

    @property
    def column(self) -> NDArray[np.int64]:
        """The most expensive model that ran, (n,); models are cheapest first."""
        found: NDArray[np.int64] = self.ran.shape[1] - 1 - self.ran[:, ::-1].argmax(axis=1)
        return found

    def of(self, rows: NDArray[np.bool_]) -> Seen:
        """The same on some images."""
        named = ("ran", "in_doubt", "answered", "correct", "is_top5", "time_ms")
        return Seen(**{name: getattr(self, name)[rows] for name in named}, points=self.points)


@lru_cache(maxsize=2)
def log_odds_of(images: Recording, fit: Recording) -> list[NDArray[np.float32]]:
    """Return what each model says of images, (n, c), at the temperatures of the images that are fitted on."""
    return images.table(fit_temperatures(fit)).log_odds


def said(ran: NDArray[np.bool_], log_odds: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Return what the models that ran say together, (n, c), but for a factor: ran (n, m), log_odds (n, c) of each."""
    found = np.zeros_like(log_odds[0])
    for column, logs in enumerate(log_odds):
        rows = ran[:, column]
        found[rows] += logs[rows]
    return found


Folds = Sequence[tuple[NDArray[np.int64], Recording, Recording]]
"""Of each fold its rows, the images of the other folds, and its own."""


class Trial:
    """One way on the images that are fitted on, each held out once, and on others that nothing was fitted on."""

    def __init__(self, way: Way, fit: Recording, folds: Folds, test: Recording) -> None:
        self.way, self._fit, self._folds, self._test = way, fit, folds, test
        self._right, self._costs_ms = fit.right, fit.costs("time")
        best = fit.models.index(fit.best_single)
        self._rival = Outcomes(self._right[:, best], np.full(len(self._right), self._costs_ms[best]))

    def held_out(self, wish: Wish) -> Seen:
        """What it gives on each image, learned on the other folds, at the point that those chose."""
        ran, in_doubt, words = np.zeros_like(self._right), np.zeros(len(self._right), bool), []
        for held, _, _ in self._folds:
            rows = np.zeros(len(in_doubt), bool)
            rows[held] = True
            point = self._points[self._chosen(wish, ~rows)]
            ran[rows], in_doubt[rows] = point.ran[rows], point.in_doubt[rows]
            words.append(point.words)
        return self._seen(Point(ran, in_doubt), self._fit, tuple(words))

    def on_others(self, wish: Wish) -> Seen:
        """What it gives on other images, learned on all, at the point that all chose."""
        point = self._others[self._chosen(wish, np.ones(len(self._right), bool))]
        return self._seen(point, self._test, (point.words,))

    def _chosen(self, wish: Wish, rows: NDArray[np.bool_]) -> int:
        return wish.chosen([one.take(rows) for one in self._outcomes], self._rival.take(rows))

    def _seen(self, point: Point, recording: Recording, words: tuple[str, ...]) -> Seen:
        logs = said(point.ran, log_odds_of(recording, self._fit))
        correct, is_top5 = (is_right(logs, recording.classes, first) for first in (1, 5))
        time_ms = point.ran @ self._costs_ms + self.way.features_ms
        return Seen(point.ran, point.in_doubt, logs.argmax(axis=1), correct, is_top5, time_ms, words)

    @cached_property
    def _outcomes(self) -> list[Outcomes]:
        seen = [self._seen(point, self._fit, ()) for point in self._points]
        return [Outcomes(one.correct, one.time_ms) for one in seen]

    @cached_property
    def _others(self) -> list[Point]:
        return self.way.tried(self._fit, self._test)

    @cached_property
    def _points(self) -> list[Point]:
        """Every operating point on all images, each held out."""
        parts = [(held, self.way.tried(train, others)) for held, train, others in self._folds]
        points = []
        for place, first in enumerate(parts[0][1]):
            ran, in_doubt = np.zeros_like(self._right), np.zeros(len(self._right), bool)
            for held, found in parts:
                ran[held], in_doubt[held] = found[place].ran, found[place].in_doubt
            points.append(Point(ran, in_doubt, first.words))
        return points
