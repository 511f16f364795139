"""How a daemon with a latency target follows a step of the load: how soon it is at its new points, without swings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

BIN_S = 0.25
SETTLED = 0.25  # of the way from the old level to the new one: so near counts as there
SMOOTH = 4  # bins, in which Poisson arrivals come evenly enough to tell a swing from chance


class Step(NamedTuple):
    """One change of the load. settled_s: until the mean cost of the answers is at its new level and stays there.

    turns: how often it changes its direction on the way and after it, by more than chance.
    """

    settled_s: float
    turns: int


def steps(at_s: Sequence[float], cost_ms: Sequence[float], each_s: float, count: int) -> list[Step]:
    """Return what follows each change of the load. at_s, cost_ms: of each answer; each_s: how long each load lasts."""
    per = round(each_s / BIN_S)
    place = np.minimum((np.array(at_s) / BIN_S).astype(int), per * count - 1)
    totals, numbers = np.bincount(place, cost_ms, per * count), np.bincount(place, minlength=per * count)
    level = np.divide(totals, numbers, out=np.full(per * count, np.nan), where=numbers > 0)
    level = np.where(np.isnan(level), np.nanmean(level), level)
    settled = [float(level[(n + 1) * per - per // 2 : (n + 1) * per].mean()) for n in range(count)]
    return [_step(level[n * per : (n + 1) * per], settled[n - 1], settled[n]) for n in range(1, count)]


def _step(level: NDArray[np.float64], old: float, new: float) -> Step:
    near = abs(new - old) * SETTLED
    smooth = np.convolve(level, np.ones(SMOOTH) / SMOOTH, "valid")
    away = np.flatnonzero(np.abs(smooth - new) > near)
    settled_s = BIN_S * (0 if away.size == 0 else int(away[-1]) + 1)
    turns, direction, last = 0, np.sign(new - old), old
    for one in smooth:
        if abs(one - last) > near:
            turns += np.sign(one - last) != direction
            direction, last = np.sign(one - last), one
        elif np.sign(one - last) == direction:
            last = one
    return Step(settled_s, int(turns))
