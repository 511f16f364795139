"""Which of two models that differ in their numbers alone is worth its place on this machine: 32 bits, or 8."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

CLEARLY_FASTER = 0.9
"""Of its twin's time, at most: less may be noise, and 8 bits cost a little accuracy."""
TOLERATED = 0.005
"""Share of right answers by which one that is as accurate may be behind."""


@dataclass(frozen=True)
class Twins:
    """What to do with models that have a twin.

    slower: in 8 bits, to be left out, and why. replaced: those of 32 bits than which one in 8 bits is clearly faster
    and as accurate.
    """

    slower: Mapping[str, str]
    replaced: frozenset[str]


def judge_twins(twins: Mapping[str, str], costs_ms: Mapping[str, float], accuracy: Mapping[str, float]) -> Twins:
    """Return which models are not worth their place.

    twins: model in 8 bits -> the one that it was made of. costs_ms: of each model, on this machine. accuracy: the share
    of calibration images that each is right on.
    """
    ratios = {name: costs_ms[name] / costs_ms[twin] for name, twin in twins.items()}
    slower = {name: ratio for name, ratio in ratios.items() if ratio > CLEARLY_FASTER}
    eight = twins.keys() - slower.keys()
    replaced = {
        twins[name]
        for name in eight
        if any(
            costs_ms[other] <= CLEARLY_FASTER * costs_ms[twins[name]]
            and accuracy[other] >= accuracy[twins[name]] - TOLERATED
            for other in eight
        )
    }
    reasons = {name: f"takes {ratio:.2g} times as long as {twins[name]} here" for name, ratio in slower.items()}
    return Twins(reasons, frozenset(replaced))
