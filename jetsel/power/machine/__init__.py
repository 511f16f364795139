"""What a board can say of itself beside its power: its name, mode, clocks, load, heat, and whether it is throttled."""

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
