"""What a board can say of itself beside its power: its name, mode, clocks, load, heat, and whether it is throttled."""

from jetsel.power.machine.facts import Battery, Clock, Fact, Facts, Known, differences, kept, restored, throttled
from jetsel.power.machine.machine import Machine, look

__all__ = [
    "Battery",
    "Clock",
    "Fact",
    "Facts",
    "Known",
    "Machine",
    "differences",
    "kept",
    "look",
    "restored",
    "throttled",
]
