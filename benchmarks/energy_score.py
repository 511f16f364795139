"""Energies beside the truth: how far off windows are, whether their uncertainty says so, and the table of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from benchmarks.power_model import BUSY_W, IDLE_W
from benchmarks.report import table
from jetsel.power.reading import Reading

LARGE = 0.1
SMALL = 0.01  # of what a busy board takes: relative errors of less say nothing
COLUMNS = (
    "windows",
    "too short",
    "median error",
    "median size of the error",
    "95 % below",
    "worst",
    "median uncertainty",
    "95 % interval holds the truth",
    "over 10 % and outside of it",
    "over 10 % and not said",
)


@dataclass
class Score:
    """All windows of one length, of one signal at one rate."""

    truths_mj: list[float] = field(default_factory=list)
    readings_mj: list[float] = field(default_factory=list)
    halves_mj: list[float] = field(default_factory=list)
    unknown: int = 0
    least_mj: float = 0.0  # windows that take less are left out of errors relative to the truth

    def add(self, reading: Reading, truth_mj: float) -> None:
        """Count a window. truth_mj: what was really taken above idle."""
        if reading.energy_mj is None or reading.uncertainty_mj is None:
            self.unknown += 1
            return
        self.truths_mj.append(truth_mj)
        self.readings_mj.append(reading.energy_mj)
        self.halves_mj.append(reading.uncertainty_mj)

    def take_in(self, other: Score) -> None:
        """Count another's windows too."""
        self.truths_mj += other.truths_mj
        self.readings_mj += other.readings_mj
        self.halves_mj += other.halves_mj
        self.unknown += other.unknown

    @property
    def outside(self) -> int:
        """How many are off by over 10 % of the truth, and by more than their uncertainty."""
        return int(np.sum(self._outside()[0]))

    @property
    def unsaid(self) -> int:
        """How many of those do not even say that they may be off by 10 %."""
        outside, says_large = self._outside()
        return int(np.sum(outside & ~says_large))

    def _outside(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        truths, readings, halves = (np.array(each) for each in (self.truths_mj, self.readings_mj, self.halves_mj))
        errors = np.abs(readings - truths)
        value = np.maximum(np.abs(readings), np.abs(truths))
        return (errors > LARGE * np.abs(truths) + 1e-6) & (halves < errors), halves >= LARGE * value

    def row(self) -> list[str]:
        """Return the cells of COLUMNS. Errors are relative to the truth, where it is more than `least_mj`."""
        if not self.truths_mj:
            return ["0", str(self.unknown), *["-"] * 8]
        truths, readings, halves = (np.array(each) for each in (self.truths_mj, self.readings_mj, self.halves_mj))
        errors = readings - truths
        counted = truths > self.least_mj
        if not counted.any():
            return [str(len(truths)), str(self.unknown), *["-"] * 6, str(self.outside), str(self.unsaid)]
        shares = errors[counted] / truths[counted]
        sizes = np.abs(shares)
        return [
            str(len(truths)),
            str(self.unknown),
            f"{100 * np.median(shares):+.1f} %",
            f"{100 * np.median(sizes):.1f} %",
            f"{100 * np.percentile(sizes, 95):.0f} %",
            f"{100 * np.max(sizes):.0f} %",
            f"{100 * np.median(halves[counted] / truths[counted]):.1f} %",
            f"{100 * np.mean(np.abs(errors) <= halves):.0f} %",
            str(self.outside),
            str(self.unsaid),
        ]


def scored(length_s: float) -> Score:
    """Return an empty score of windows of one length."""
    return Score(least_mj=1e3 * SMALL * (BUSY_W - IDLE_W) * length_s)


def lines(scores: dict[tuple[str, float, float], Score]) -> Iterator[str]:
    """Yield a table for each rate: keys are signal, rate in Hz and length of the window in s."""
    for rate_hz in dict.fromkeys(rate_hz for _, rate_hz, _ in scores):
        yield f"\n### {rate_hz:g} samples a second\n"
        rows = [
            [f"{signal}, {length_s * 1e3:g} ms", *score.row()]
            for (signal, rate, length_s), score in scores.items()
            if rate == rate_hz
        ]
        yield from table(("signal, window", *COLUMNS), rows)
    yield f"\nOver 10 % and not said, in all: {sum(score.unsaid for score in scores.values())}."


def by_kind(scores: dict[tuple[str, float, float], Score]) -> dict[tuple[str, float, float], Score]:
    """Return the scores of each kind of signal together: constant, square, recorded."""
    kinds: dict[tuple[str, float, float], Score] = {}
    for (signal, rate_hz, length_s), score in scores.items():
        kinds.setdefault((signal.split()[0], rate_hz, length_s), scored(length_s)).take_in(score)
    return kinds


def long_enough(scores: dict[tuple[str, float, float], Score], rate_hz: float, least_s: float) -> Score:
    """Return the windows of all signals at one rate that are at least so long, as one."""
    pooled = Score()
    for (_, rate, length_s), score in scores.items():
        if rate == rate_hz and length_s >= least_s:
            pooled.take_in(score)
    return pooled
