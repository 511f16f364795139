"""Networks to simulate: how long an image's way to the edge and its answer's way back take together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from jetsel.base.errors import ConfigError

EXAMPLES = "university, residential, normal:100,50, lognormal:48,0.58, two-state:30,5,200,80,0.02,0.2, or a file"
MOST_BYTES = 64 * 2**20


class Network(Protocol):
    """T_nw of n requests, one after the other."""

    def draw(self, n: int, chance: np.random.Generator) -> NDArray[np.float64]:
        """Return (n,) float64 in ms, none below 0."""


@dataclass(frozen=True)
class Normal:
    """Mean and standard deviation in ms, clipped at 0: the paper's 100 +- 50 (V)."""

    mean_ms: float
    deviation_ms: float

    def draw(self, n: int, chance: np.random.Generator) -> NDArray[np.float64]:
        """See Network."""
        return np.maximum(chance.normal(self.mean_ms, self.deviation_ms, n), 0.0)


@dataclass(frozen=True)
class LogNormal:
    """Median in ms and the deviation of the logarithm."""

    median_ms: float
    sigma: float

    def draw(self, n: int, chance: np.random.Generator) -> NDArray[np.float64]:
        """See Network."""
        return chance.lognormal(np.log(self.median_ms), self.sigma, n)


@dataclass(frozen=True)
class TwoState:
    """A good and a bad state, each normal, and the chances to go from one to the other with each request."""

    good: Normal
    bad: Normal
    worsens: float
    recovers: float

    def draw(self, n: int, chance: np.random.Generator) -> NDArray[np.float64]:
        """See Network."""
        stays, is_bad, at = [], False, 0
        while at < n:
            length = int(chance.geometric(self.recovers if is_bad else self.worsens))
            stays.append((min(length, n - at), is_bad))
            at, is_bad = at + length, not is_bad
        bad = np.repeat([state for _, state in stays], [length for length, _ in stays])
        return np.where(bad, self.bad.draw(n, chance), self.good.draw(n, chance))


@dataclass(frozen=True, eq=False)
class RecordedTimes:
    """Times that were seen, from a random one on, again and again in their order.

    sizes, medians_ms: of each size in bytes that was sent, rising; empty if the sizes are not known. times_ms are
    then above the median of their size.
    """

    times_ms: NDArray[np.float64]
    sizes: NDArray[np.float64]
    medians_ms: NDArray[np.float64]

    def draw(self, n: int, chance: np.random.Generator) -> NDArray[np.float64]:
        """See Network."""
        return np.resize(np.roll(self.times_ms, -int(chance.integers(len(self.times_ms)))), n)

    def extra_ms(self, sent_bytes: float) -> float:
        """Return how much longer this number of bytes takes than the times say: between sizes by a straight line."""
        return float(np.interp(sent_bytes, self.sizes, self.medians_ms)) if len(self.sizes) else 0.0


NAMED = {"university": LogNormal(np.exp(3.879), 0.583), "residential": LogNormal(np.exp(4.537), 0.523)}
"""Fitted to the reliance that MDInference's Table IV reports of its fastest and its slowest model."""


def read(text: str) -> Network:
    """Return the network that a text names or describes, or whose times a file has, a number of ms a line.

    Raises ConfigError with examples.
    """
    if text in NAMED:
        return NAMED[text]
    kind, _, rest = text.partition(":")
    try:
        numbers = [float(number) for number in rest.split(",")] if rest else []
        if any(not 0 <= number < float("inf") for number in numbers):
            raise ValueError("no number may be negative")
        if kind == "normal":
            mean_ms, deviation_ms = numbers
            return Normal(mean_ms, deviation_ms)
        if kind == "lognormal":
            median_ms, sigma = numbers
            return LogNormal(median_ms, sigma)
        if kind == "two-state":
            good_ms, good_deviation_ms, bad_ms, bad_deviation_ms, worsens, recovers = numbers
            if not (0 < worsens <= 1 and 0 < recovers <= 1):
                raise ValueError("probabilities must be above 0, and at most 1")
            return TwoState(Normal(good_ms, good_deviation_ms), Normal(bad_ms, bad_deviation_ms), worsens, recovers)
        return _recorded(Path(text))
    except (ValueError, OSError) as error:
        raise ConfigError(f"--network {text}: {error}; examples: {EXAMPLES}") from None


def _recorded(path: Path) -> RecordedTimes:
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"it is larger than {MOST_BYTES} bytes")
    table = np.loadtxt(path, ndmin=2)
    if table.shape[0] == 0 or table.shape[1] > 2 or not np.isfinite(table).all() or table.min() < 0:
        raise ValueError("it must contain times in ms, one per line, optionally followed by the bytes sent")
    times_ms = table[:, 0]
    if table.shape[1] == 1:
        return RecordedTimes(times_ms, np.array([]), np.array([]))
    sizes, of_size = np.unique(table[:, 1], return_inverse=True)
    medians_ms = np.array([np.median(times_ms[of_size == number]) for number in range(len(sizes))])
    return RecordedTimes(times_ms - medians_ms[of_size], sizes, medians_ms)
