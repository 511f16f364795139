"""When a read of a sensor's file returns: as the kernel's drivers time it.

Sources: NVIDIA's driver for JetPack 4 (Linux 4.9, drivers/staging/iio/meter/ina3221.c) and Linux's
drivers/hwmon/ina3221.c and ina238.c.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Protocol

from tests.simulator.chips import Schedule
from tests.simulator.fuse import Later
from tests.simulator.texts import Text


class Driver(Protocol):
    """How the reads of one chip are timed."""

    def read(self, text: Text) -> bytes | Later: ...


@dataclass
class Free:
    """Reads what the registers hold; each read takes `transfer_ns` on the I2C bus, one after the other.

    So does NVIDIA's driver in its continuous mode, and Linux's since 5.14 ("use CVRF only for single-shot conversion").
    """

    transfer_ns: int = 0
    _free_ns: int = 0

    def read(self, text: Text) -> bytes | Later:
        now_ns = time.monotonic_ns()
        if not self.transfer_ns:
            return b"%d\n" % text(now_ns)
        self._free_ns = max(now_ns, self._free_ns) + self.transfer_ns
        return Later(self._free_ns, lambda: b"%d\n" % text(time.monotonic_ns()))


@dataclass
class Waits:
    """Waits for a conversion that was not read yet, as Linux's ina3221 did from 5.0 to 5.13 (and does in single shot).

    The chip sets its conversion-ready flag when a cycle ends, and clears it when the flag is read. The driver looks at
    the flag at once, else sleeps for a whole cycle and looks again. A mutex makes the reads of one chip wait for each
    other.
    """

    begin_ns: int
    schedule: Schedule
    transfer_ns: int = 0
    _free_ns: int = 0
    _cleared_ns: int = field(init=False)

    def __post_init__(self) -> None:
        self._cleared_ns = self.begin_ns

    def read(self, text: Text) -> bytes | Later:
        begins_ns = max(time.monotonic_ns(), self._free_ns)
        looks_ns = begins_ns if self._ready(begins_ns) else begins_ns + self.schedule.cycle_ns
        self._cleared_ns = looks_ns
        self._free_ns = looks_ns + self.transfer_ns
        if self._free_ns <= time.monotonic_ns():
            return b"%d\n" % text(self._free_ns)
        return Later(self._free_ns, lambda: b"%d\n" % text(time.monotonic_ns()))

    def _ready(self, at_ns: int) -> bool:
        """Whether a cycle has ended since the flag was cleared."""
        cycle_ns = self.schedule.cycle_ns
        return (at_ns - self.begin_ns) // cycle_ns > (self._cleared_ns - self.begin_ns) // cycle_ns
