"""Energy above idle of a window of time, from samples of the power, by the trapezoid rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from jetsel.power.reading import Reading
from jetsel.power.samples import Samples
from jetsel.power.uncertainty import half_width_mj

STALE_S = 0.25
"""How long the last sample, or three of the sensor's periods if they are longer, stands for what came after it."""

NO_IDLE = "no idle power is known for this board and power mode: run `jetsel power calibrate`"
NOT_KEPT = "the window lies outside of the samples that are kept"
NO_READING = "the sensor could not be read during the window"


class IdlePower(Protocol):
    """The power that is deducted: its mean and half of its 95 % interval, in watts."""

    @property
    def mean_w(self) -> float: ...  # noqa: D102

    @property
    def half_width_w(self) -> float: ...  # noqa: D102


@dataclass(frozen=True, eq=False)
class Cut:
    """The samples that a window needs: those inside and their neighbours; times count from the window's begin.

    times_s: (m,) float64, the first at or before 0. power_w: (m,). Where no sample lies at or after the window's end,
    the last value stands once more at the end, and `held_s` says for how long nothing was seen.
    """

    times_s: NDArray[np.float64]
    power_w: NDArray[np.float64]
    edges_ns: tuple[int, int]
    length_s: float
    held_s: float
    inside: int  # readings inside the window

    @property
    def clipped_s(self) -> NDArray[np.float64]:
        """Return the times, those outside moved to the window's edges."""
        return np.clip(self.times_s, 0.0, self.length_s)

    def energy_j(self) -> float:
        """Return the integral of the straight lines between the samples over the window."""
        at_s = self.clipped_s
        power_w = np.interp(at_s, self.times_s, self.power_w)
        return float(np.sum(np.diff(at_s) * (power_w[1:] + power_w[:-1])) / 2)


@dataclass(frozen=True)
class Measure:
    """What a window took, however few samples lie inside: for shares of it, and for sums of several windows."""

    energy_mj: float
    half_width_mj: float  # of the 95 % interval
    samples: int


def integrate(samples: Samples, begin_ns: int, end_ns: int, idle: IdlePower | None) -> Reading:
    """Return the energy above idle power between two instants (time.monotonic_ns()), with its uncertainty.

    Trapezoid rule, the power at both edges interpolated (Taylor et al., section 4.2: idle power is deducted). Where
    the window ends after the last sample, that value is held and the uncertainty widened. None with a reason: below
    two samples inside, an instant without reading inside or at an edge, no idle power, a window that was not kept.
    """
    found = measure(samples, begin_ns, end_ns, idle)
    if isinstance(found, str):
        return Reading(None, found)
    if found.samples < 2:
        return Reading(None, too_few(found.samples, end_ns - begin_ns, samples.bound_s), found.samples)
    return Reading(found.energy_mj, None, found.samples, found.half_width_mj)


def measure(samples: Samples, begin_ns: int, end_ns: int, idle: IdlePower | None) -> Measure | str:
    """Return what `integrate` does, however few samples lie inside, or the reason why it cannot be known."""
    if idle is None:
        return NO_IDLE
    cut = cut_out(samples, begin_ns, end_ns)
    if isinstance(cut, str):
        return cut
    energy_mj = 1e3 * (cut.energy_j() - idle.mean_w * cut.length_s)
    return Measure(energy_mj, half_width_mj(cut, samples, idle), inside(samples, begin_ns, end_ns))


def cut_out(samples: Samples, begin_ns: int, end_ns: int) -> Cut | str:
    """Return the samples that a window needs, or the reason why they do not tell its energy."""
    times_ns = samples.times_ns
    first = int(np.searchsorted(times_ns, begin_ns, side="right")) - 1
    if end_ns <= begin_ns:
        return "the window has no length"
    if first < 0:
        return NOT_KEPT
    last = min(int(np.searchsorted(times_ns, end_ns)), len(times_ns) - 1)
    times_s = np.asarray(times_ns[first : last + 1] - begin_ns, dtype=np.float64) * 1e-9
    power_w = samples.power_w[first : last + 1]
    if np.isnan(power_w).any():
        return NO_READING
    length_s = (end_ns - begin_ns) * 1e-9
    held_s = max(0.0, length_s - times_s[-1])
    if held_s > max(STALE_S, 3 * samples.period_s):
        return f"the samples end {held_s * 1e3:.0f} ms before the window does: {NOT_KEPT}"
    inside = int(np.count_nonzero((times_s >= 0) & (times_s <= length_s)))
    if held_s > 0:
        times_s, power_w = np.append(times_s, length_s), np.append(power_w, power_w[-1])
    return Cut(times_s, power_w, (begin_ns, end_ns), length_s, held_s, inside)


def inside(samples: Samples, begin_ns: int, end_ns: int) -> int:
    """Return how many values the sensor is known to have had inside a window.

    That is each sample, where its period is known. Else each change, and of a value that stays equal one in each
    `bound_s`, as the sensor may merely repeat it for so long.
    """
    first, last = np.searchsorted(samples.times_ns, begin_ns), np.searchsorted(samples.times_ns, end_ns, side="right")
    if samples.bound_s is None or last <= first:
        return int(last - first)
    changed = np.diff(samples.power_w[max(first - 1, 0) : last]) != 0
    changes_ns = samples.times_ns[last - len(changed) : last][changed]
    edges_ns = np.concatenate([[begin_ns], changes_ns, [end_ns]])
    repeats = np.floor_divide(np.diff(edges_ns), max(round(samples.bound_s * 1e9), 1))
    return min(len(changes_ns) + int(repeats.sum()), int(last - first))


def too_few(count: int, length_ns: int, bound_s: float | None = None) -> str:
    """Return the reason of a window that the sensor hardly saw."""
    seen = "one sample lies" if count == 1 else "no sample lies"
    text = f"{seen} inside the window of {length_ns / 1e6:.3g} ms; two are needed"
    if bound_s is None:
        return text
    return (
        f"{text}, and equal readings are no new ones: how often the sensor has a new value is not known yet, it may "
        f"be every {bound_s * 1e3:.3g} ms only; `jetsel power calibrate` finds it out"
    )
