"""Which of two models that differ in their numbers alone is worth its place on this machine: 32 bits, or 8."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

CLEARLY_FASTER = 0.9
"""Of its twin's time, at most: less may be noise, and 8 bits cost a little accuracy."""
TOLERATED = 0.005
"""Share of right answers that 8 bits may lose before both models compete."""


@dataclass(frozen=True)
class Twins:
    """What to do with models that have a twin. slower: in 8 bits, to be left out, and why. replaced: by 8 bits."""

    slower: Mapping[str, str]
    replaced: frozenset[str]


def judge_twins(twins: Mapping[str, str], costs_ms: Mapping[str, float], accuracy: Mapping[str, float]) -> Twins:
    """Return which models are not worth their place.

    twins: model in 8 bits -> the one that it was made of. costs_ms: of each model, on this machine. accuracy: the share
    of calibration images that each is right on.
    """
    slower, replaced = {}, set()
    for name, twin in twins.items():
        ratio = costs_ms[name] / costs_ms[twin]
        if ratio > CLEARLY_FASTER:
            slower[name] = f"takes {ratio:.2g} times as long as {twin} here"
        elif accuracy[name] >= accuracy[twin] - TOLERATED:
            replaced.add(twin)
    return Twins(slower, frozenset(replaced))
