"""What the power above idle adds up to between given instants, each stretch integrated once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jetsel.power.integration import STALE_S, IdlePower
from jetsel.power.samples import Samples


@dataclass(frozen=True)
class Stretch:
    """One stretch of time: the energy above idle of the part in which power is known, and how long the rest is."""

    energy_mj: float
    unmetered_s: float


def stretches(samples: Samples, instants_ns: list[int], idle: IdlePower | None) -> list[Stretch]:
    """Return the stretches between neighbouring instants, in the order of time; `samples` reaches past both ends.

    Power runs straight from sample to sample, as in `integrate`. It is unknown before the first sample, next to one
    without reading, a while after the last, and throughout where the idle power is.
    """
    at = np.array(instants_ns, dtype=np.int64)
    zero_ns = instants_ns[0]
    at_s = (at - zero_ns) * 1e-9
    if idle is None or len(samples.times_ns) == 0:
        return [Stretch(0.0, float(length)) for length in np.diff(at_s)]
    times_s, power_w = _held(np.asarray(samples.times_ns - zero_ns, dtype=np.float64) * 1e-9, samples)
    marks_s = np.sort(np.concatenate([at_s, times_s[(times_s > at_s[0]) & (times_s < at_s[-1])]]))
    energy_j, known_s = _pieces(marks_s, times_s, power_w - idle.mean_w)
    owner = np.searchsorted(at_s, marks_s[:-1], side="right") - 1
    energies_mj = 1e3 * np.bincount(owner, energy_j, len(at_s))
    lengths_s = np.diff(at_s)
    unmetered_s = np.maximum(lengths_s - np.bincount(owner, known_s, len(at_s))[: len(lengths_s)], 0.0)
    return [Stretch(float(e), float(u)) for e, u in zip(energies_mj, unmetered_s, strict=False)]


def _held(times_s: NDArray[np.float64], samples: Samples) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the samples, the last one once more at the end of the time for which it stands."""
    until_s = times_s[-1] + max(STALE_S, 3 * samples.period_s)
    return np.append(times_s, until_s), np.append(samples.power_w, samples.power_w[-1])


def _pieces(
    marks_s: NDArray[np.float64], times_s: NDArray[np.float64], above_w: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the energy (J) of each piece between neighbouring marks, and how long power is known in it.

    The marks hold every sample between them, so that each piece lies in one gap between two samples.
    """
    begins_s, ends_s = marks_s[:-1], marks_s[1:]
    gap = np.searchsorted(times_s, begins_s, side="right") - 1
    inside = (gap >= 0) & (gap < len(times_s) - 1)
    gap = np.clip(gap, 0, len(times_s) - 2)
    known = inside & ~np.isnan(above_w[gap]) & ~np.isnan(above_w[gap + 1])
    lengths_s = np.where(known, ends_s - begins_s, 0.0)
    slope_w_per_s = (above_w[gap + 1] - above_w[gap]) / np.maximum(times_s[gap + 1] - times_s[gap], 1e-9)
    middle_w = above_w[gap] + slope_w_per_s * ((begins_s + ends_s) / 2 - times_s[gap])
    return np.where(known, middle_w * lengths_s, 0.0), lengths_s
