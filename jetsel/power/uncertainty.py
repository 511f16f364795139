"""How far the energy of a window may be off: half of the 95 % interval, from what the samples do not show.

None of this knows the truth, so each part is what a doubter could object, in watts times seconds:

- quantisation: a step q has the error q / sqrt(12), one and the same for all samples of one value, so on constant power
  it does not average out (JCGM 100:2008, 4.3.7);
- noise: what the samples scatter from one to the next, which averages out (JCGM 100:2008, 4.2.3);
- between two samples the power may have jumped at any moment: the trapezoid over a gap of d seconds and a change of c
  watts is off by at most c d / 2. These errors keep their sign where the load repeats in step with the samples, so they
  are added; only changes that come at random average out;
- hidden swings: samples further apart than a load can swing up and down cannot tell steady power from a load that
  repeats in step with them (aliasing); and however close they are, at an edge of the window half a swing may hide;
- dates: when exactly the sensor looked is known to half of its period only, which moves each change that it saw;
- edges: a sensor that averages, or whose value is dated wrongly by up to half of its period, smears what changes at an
  edge of the window across it; and after the last sample anything that was seen, or idle, may have followed;
- an update period that is not known yet: a value may be as old as the longest period that it can be, and what such a
  sensor has not shown at all may be as large as the idle power;
- the error of the idle power, times the window's length.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from jetsel.power.samples import Samples

if TYPE_CHECKING:
    from jetsel.power.integration import Cut, IdlePower

Z = 1.96  # standard deviations of a normal distribution that hold 95 % of it on both sides
SWING_S = 1.5e-3
"""A load goes up and comes down again in no less: from 667 samples/s on, nothing whole hides between two samples."""
HIDDEN = 0.12
"""Share of the power above idle (at least: of the idle power) that is allowed for hidden swings. They may be larger;
this much tells the reader that the samples are too few for better than 10 %, of what was read or of more."""
IN_STEP_S = 3.0
"""How long a load may keep step with the samples; the errors of longer windows are added up in parts of this length,
and the parts as independent ones."""
FEWEST = 100  # samples from which it shows whether a load repeats
LONGEST_LAG = 20  # a load that repeats after more samples than this is off by under 10 % even in step with them


def half_width_mj(cut: Cut, samples: Samples, idle: IdlePower) -> float:
    """Return half of the 95 % interval around the energy of a window, in mJ."""
    seen_s = np.diff(cut.clipped_s)
    gaps_s = np.maximum(np.diff(cut.times_s), 1e-9)
    changes_w = np.maximum(np.abs(np.diff(cut.power_w)) - (samples.resolution_w or 0.0), 0.0)
    parts = (
        _quantisation_ws(cut, seen_s, samples.resolution_w),
        _noise_ws(changes_w, seen_s),
        idle.half_width_w * cut.length_s,
        _between_ws(cut, seen_s, gaps_s, changes_w, idle.mean_w)
        + _misdated_ws(changes_w[seen_s >= gaps_s], samples.age_s)
        + _half_swings_ws(cut, gaps_s, idle.mean_w)
        + _smear_ws(samples, cut.edges_ns, idle.mean_w)
        + _held_ws(cut, idle.mean_w),
    )
    return 1e3 * math.hypot(*parts)


def _quantisation_ws(cut: Cut, seen_s: NDArray[np.float64], step_w: float | None) -> float:
    """Return Z standard deviations; all samples of one value are off by the same."""
    if not step_w:
        return 0.0
    weights_s = np.convolve(seen_s, (0.5, 0.5))  # how long each sample counts
    steps = np.rint(cut.power_w / step_w)
    order = np.argsort(steps)
    firsts = np.flatnonzero(np.diff(steps[order], prepend=np.nan))
    together_s = np.add.reduceat(weights_s[order], firsts)
    return Z * step_w * math.sqrt(float(np.sum(together_s**2)) / 12)


def _noise_ws(changes_w: NDArray[np.float64], seen_s: NDArray[np.float64]) -> float:
    """Return Z standard deviations of the mean; the median of the changes ignores the few that are the load's own.

    1.4826 medians of absolute values are one standard deviation of a normal distribution; a difference of two samples
    has twice their variance.
    """
    ranked_w, count = np.sort(changes_w), len(changes_w)
    median_w = (float(ranked_w[(count - 1) // 2]) + float(ranked_w[count // 2])) / 2
    deviation_w = 1.4826 * median_w / math.sqrt(2)
    return Z * deviation_w * math.sqrt(float(np.sum(seen_s**2)))


def _between_ws(
    cut: Cut,
    seen_s: NDArray[np.float64],
    gaps_s: NDArray[np.float64],
    changes_w: NDArray[np.float64],
    idle_w: float,
) -> float:
    """Return the bound of what may have happened between the samples.

    A jump of c watts somewhere in a gap of d seconds, of which the window's edge leaves x, is off by at most
    c x (1 - x / 2d): c d / 2 in a whole gap. Where jumps come at random each is off by c d / sqrt(12) on average.
    """
    bounds_ws = changes_w * seen_s * (1 - seen_s / (2 * gaps_s))
    whole = seen_s >= gaps_s
    in_step_ws = _in_step(cut.power_w) * float(np.sum(bounds_ws[whole]))
    at_random_ws = Z * math.sqrt(float(np.sum((changes_w * gaps_s)[whole] ** 2)) / 12)
    level_w = np.abs((cut.power_w[1:] + cut.power_w[:-1]) / 2 - idle_w)
    hidden_ws = HIDDEN * float(np.sum((np.maximum(level_w, idle_w) * seen_s)[gaps_s > SWING_S]))
    parts = max(1.0, cut.length_s / IN_STEP_S)
    return (
        max(at_random_ws, in_step_ws / math.sqrt(parts))
        + hidden_ws / math.sqrt(parts)
        + float(np.sum(bounds_ws[~whole]))
    )


def _half_swings_ws(cut: Cut, gaps_s: NDArray[np.float64], idle_w: float) -> float:
    """Return what two samples at the middle of a load's swings do not show of it at the window's edges.

    A load that goes from idle to twice the mean and back, half of its period in each of two gaps, is off by up to a
    quarter of the mean times a gap on either side of an edge.
    """
    means_w = (cut.power_w[1:] + cut.power_w[:-1]) / 2
    return sum(abs(float(means_w[at]) - idle_w) * min(float(gaps_s[at]), cut.length_s) for at in (0, -1)) / 4


def _misdated_ws(changes_w: NDArray[np.float64], period_s: float) -> float:
    """Return Z standard deviations of what changes inside the window move by where each sample's date is off by itself.

    A value that is read may be new or a whole period old, so its date is off by up to half of a period, evenly spread.
    """
    return Z * period_s / 2 * math.sqrt(float(np.sum(changes_w**2)) / 3)


def _in_step(power_w: NDArray[np.float64]) -> float:
    """Return how much of the samples' variance comes again after some lag: 1 for what repeats or lasts, 0 for noise.

    Too few samples to tell are taken for a load in step.
    """
    if len(power_w) < FEWEST:
        return 1.0
    centred_w = power_w - np.mean(power_w)
    alike = 0.0
    for lag in range(2, LONGEST_LAG + 1):
        ahead, behind = centred_w[lag:], centred_w[:-lag]
        spread = math.sqrt(float(np.dot(ahead, ahead) * np.dot(behind, behind)))
        alike = max(alike, float(np.dot(ahead, behind)) / spread if spread > 0 else 1.0)
    return alike


def _smear_ws(samples: Samples, edges_ns: tuple[int, int], idle_w: float) -> float:
    """Return what may lie on the wrong side of an edge: the range of the power around each of both for half a period.

    What was seen before and after the window counts, as far as `samples` reaches. While the sensor's period is not
    known, what it has not shown yet may be as large as the idle power, for as long as its values may stand.
    """
    reach_ns = int(1.5e9 * samples.age_s)
    seen_ws = sum(_range_w(samples, edge_ns, reach_ns) for edge_ns in edges_ns) * samples.age_s / 2
    return seen_ws if samples.bound_s is None else max(2 * seen_ws, idle_w * samples.bound_s)


def _range_w(samples: Samples, edge_ns: int, reach_ns: int) -> float:
    """Return the range of the power among the samples around an edge, the two next to it always."""
    after = int(np.searchsorted(samples.times_ns, edge_ns))
    low = min(int(np.searchsorted(samples.times_ns, edge_ns - reach_ns)), max(after - 1, 0))
    high = max(int(np.searchsorted(samples.times_ns, edge_ns + reach_ns, side="right")), after + 1)
    around_w = samples.power_w[low:high]
    # No reading counts for nothing; one of the two next to the edge is in the window's cut, and was read.
    return float(np.fmax.reduce(around_w) - np.fmin.reduce(around_w))


def _held_ws(cut: Cut, idle_w: float) -> float:
    """Return what may have followed the last sample: the range that was seen, or a fall to idle power."""
    if cut.held_s == 0:
        return 0.0
    return cut.held_s * max(float(np.ptp(cut.power_w)), abs(float(cut.power_w[-1]) - idle_w))
