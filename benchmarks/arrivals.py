"""When requests come in an open loop: by chance at an even rate, or in bursts as people's requests really came."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BURSTS = (
    *(9, 0, 0, 0, 8, 12, 0, 0, 7, 13, 0, 0, 14, 26, 21),
    *(23, 28, 11, 6, 5, 5, 6, 7, 0, 0, 0, 0, 0, 0, 0),
    *(3, 11, 20, 4, 0, 2, 14, 8, 12, 28, 5, 27, 12, 8, 18),
)
"""Requests in each of 45 seconds, from 18:20:07 on, of the trace of a code assistant's model that Azure published
(github.com/Azure/AzurePublicDataset, AzureLLMInferenceTrace_code.csv of 2023, CC-BY 4.0)."""

BURST_STEP_S = 0.25
"""How long each of these seconds lasts here: requests on a device take milliseconds where those took seconds."""


def poisson(rate_hz: float, length_s: float, chance: np.random.Generator) -> NDArray[np.float64]:
    """Return the times of a Poisson process in seconds, ascending, (n,)."""
    return _within(np.array([rate_hz]), length_s, chance)


def bursts(rate_hz: float, length_s: float, chance: np.random.Generator) -> NDArray[np.float64]:
    """Return the times of requests whose rate follows BURSTS; rate_hz is its mean over the whole pattern."""
    steps = round(length_s / BURST_STEP_S)
    pattern = np.resize(np.array(BURSTS, float), steps)
    return _within(pattern * rate_hz / np.mean(BURSTS), BURST_STEP_S, chance)


def stepped(rates_hz: list[float], each_s: float, chance: np.random.Generator) -> NDArray[np.float64]:
    """Return the times of a Poisson process whose rate changes after each such time."""
    return _within(np.array(rates_hz), each_s, chance)


def _within(rates_hz: NDArray[np.float64], each_s: float, chance: np.random.Generator) -> NDArray[np.float64]:
    counts = chance.poisson(rates_hz * each_s)
    starts_s = np.repeat(np.arange(len(rates_hz)) * each_s, counts)
    times_s: NDArray[np.float64] = np.sort(starts_s + chance.random(counts.sum()) * each_s)
    return times_s
