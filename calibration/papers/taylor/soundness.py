"""What a distance to the neighbours says of a chain's choice (section 6): how often it is right, when to doubt it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Soundness:
    """What was found of distances.

    limit: beyond it the choice is in doubt, None if no distance is. steps: (distance up to which, share of the choices
    there that were right), by growing distance; beyond the last, the last.
    """

    limit: float | None
    steps: tuple[tuple[float, float], ...]


STEPS = 20  # at most: pools of photographs from near to far


def fit_soundness(
    distances: NDArray[np.float64], right: NDArray[np.bool_], fallback_right: NDArray[np.bool_]
) -> Soundness:
    """Return the confidence by distance, and the distance beyond which the fallback is right more often.

    distances: (n,) to the neighbours, of photographs that were held out; right: (n,), whether the choice was;
    fallback_right: (n,), whether the fallback is. The confidence is the non-increasing function of the distance that is
    closest to the observations (isotonic regression). The limit is the distance from which on to the farthest the
    choices are beaten the most, in sum; None if no such end loses two standard errors or more, and if the nearer
    ones lose as much, as far as two standard errors of the difference can tell: then the distance tells nothing. Cut is
    between twentieths, and photographs at one distance are never parted.
    """
    order = np.argsort(distances, kind="stable")
    pools = _pools(distances[order], order)
    shares = non_increasing(
        np.array([right[pool].mean() for pool in pools]), np.array([len(pool) for pool in pools], np.float64)
    )
    steps: list[tuple[float, float]] = []
    for pool, share in zip(pools, shares, strict=True):
        end = (float(distances[pool].max()), float(share))
        if steps and steps[-1][1] == end[1]:
            steps.pop()
        steps.append(end)
    gain = fallback_right[order].astype(np.float64) - right[order]
    ends = np.cumsum([len(pool) for pool in pools])
    return Soundness(_limit(distances[order], gain, ends[:-1]), tuple(steps))


def _pools(distances: NDArray[np.float64], order: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """About equal parts of `order`, whose sorted distances these are, cut only where the distance grows."""
    wanted = np.arange(STEPS) * len(order) // STEPS
    return np.split(order, np.unique(np.searchsorted(distances, distances[wanted]))[1:])


def non_increasing(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the non-increasing sequence of least weighted squared error, by pooling adjacent violators: (n,)."""
    pools: list[tuple[float, float, int]] = []  # mean, weight, length
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        pools.append((value, weight, 1))
        while len(pools) > 1 and pools[-2][0] < pools[-1][0]:
            (mean, heavy, many), (other, light, few) = pools[-2:]
            pools[-2:] = [((mean * heavy + other * light) / (heavy + light), heavy + light, many + few)]
    return np.concatenate([np.full(length, mean) for mean, _, length in pools])


def _limit(distances: NDArray[np.float64], gain: NDArray[np.float64], cuts: NDArray[np.int64]) -> float | None:
    """The distance beyond which leaving the choice to the fallback gains the most, if it gains less before.

    distances: (n,), from near to far. gain: (n,), 1 if the fallback alone is right, -1 if the choice alone is.
    cuts: before which photographs the limit may lie, the nearest left out.
    """
    starts = np.array([0, *cuts])
    beyond = gain[::-1].cumsum()[::-1][starts]  # what is gained if this one and all that are farther go to the fallback
    spread = np.sqrt((gain * gain)[::-1].cumsum()[::-1][starts])
    sure = np.where(beyond >= 2 * spread, beyond, 0.0)
    start = int(starts[sure.argmax()])
    if sure.max() <= 0 or start == 0:
        return None
    near, far = gain[:start], gain[start:]
    error = np.sqrt((near * near).mean() / len(near) + (far * far).mean() / len(far))
    return float(distances[start - 1]) if far.mean() - near.mean() >= 2 * error else None
