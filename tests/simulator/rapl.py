"""The energy counter of a processor, as Intel's RAPL keeps it and Linux's powercap shows it.

Source: Intel, Software Developer's Manual, volume 3, 15.10 (Platform Specific Power Management Support): the counter is
written about once a millisecond, in steps of 1/2^14 J (61 uJ) on most processors; Linux, Documentation/power/powercap:
`energy_uj` wraps around at `max_energy_range_uj`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.simulator.chips import Energy

STEP_J = 2.0**-14
UPDATE_NS = 1_000_000


@dataclass(frozen=True)
class Counter:
    """One zone's counter, which stood at `first_uj` when it began."""

    energy_j: Energy
    begin_ns: int
    first_uj: int
    range_uj: int

    def microjoules(self, now_ns: int) -> int:
        written_ns = self.begin_ns + (now_ns - self.begin_ns) // UPDATE_NS * UPDATE_NS
        steps = (self.energy_j(written_ns) - self.energy_j(self.begin_ns)) // STEP_J
        return (self.first_uj + int(steps * STEP_J * 1e6)) % self.range_uj
