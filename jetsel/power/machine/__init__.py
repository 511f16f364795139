"""Facts of a board beside its power: its name, power mode, clocks, load, temperatures, and throttling."""

from jetsel.power.machine.facts import (
    BoardFacts,
    ClockReading,
    Fact,
    Known,
    comparable_facts,
    differences,
    restore_facts,
    throttled,
)
from jetsel.power.machine.machine import Machine, read_facts

__all__ = [
    "BoardFacts",
    "ClockReading",
    "Fact",
    "Known",
    "Machine",
    "comparable_facts",
    "differences",
    "read_facts",
    "restore_facts",
    "throttled",
]
