"""Facts of a board beside its power: its name, power mode, clocks, load, temperatures, and throttling."""

from jetsel.power.machine.facts import (
    BoardFacts,
    ClockReading,
    Fact,
    Known,
    differences,
    kept,
    restored,
    throttled,
)
from jetsel.power.machine.machine import Machine, look

__all__ = [
    "BoardFacts",
    "ClockReading",
    "Fact",
    "Known",
    "Machine",
    "differences",
    "kept",
    "look",
    "restored",
    "throttled",
]
