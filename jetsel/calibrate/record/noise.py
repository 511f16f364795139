"""Whether the machine was fit to be timed on: others' work, stolen time, clocks and temperatures meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from jetsel.power.machine import clocks, throttling
from jetsel.power.processor import processor
from jetsel.power.sysfs import root_of

OTHERS_SHARE = 0.05  # of all cores; an idle desktop or board takes 1 to 3 %
STOLEN_SHARE = 0.02  # of all cores, by the hypervisor
CLOCK_SHARE = 0.9  # of the highest clock that the power mode allows


class NoiseMonitor:
    """Looks at the machine from when it is made until it is asked."""

    def __init__(
        self,
        sysfs: Path | str = "/sys",
        now: Callable[[], float] = time.monotonic,
        own_s: Callable[[], float] = time.process_time,
    ) -> None:
        """sysfs: as [power] has it; proc lies beside it. own_s: processor time of this process so far."""
        self._root = Path(sysfs).parent
        self._sysfs = root_of(str(sysfs))
        self._now = now
        self._own_s = own_s
        self._at_start = (now(), own_s(), processor(self._root))
        self._lowest: dict[str, float] = {}  # share of the highest clock, of CPU and GPU
        self._hot: str | None = None

    def look(self, gpu: bool = False) -> None:
        """Look at clocks and temperatures; call it while a core is busy with what is timed. gpu: whether it was too."""
        gpus = clocks.gpu(self._sysfs).value if gpu else None
        for name, read in (("CPU", clocks.cpu(self._sysfs).value), ("GPU", gpus)):
            if read:  # idle cores slow down: the fastest is the one that worked
                share = max(clock.share for clock in read)
                self._lowest[name] = min(share, self._lowest.get(name, share))
        self._hot = self._hot or next(iter(throttling.hot(self._sysfs)), None)

    def reason(self) -> str | None:
        """Return why times since the start cannot be trusted, None where nothing speaks against them."""
        found = self._shares_reason()
        found += [
            f"the {name} ran at {100 * share:.0f} % of its highest clock"
            for name, share in self._lowest.items()
            if share < CLOCK_SHARE
        ]
        found += [self._hot] if self._hot else []
        return "; ".join(found) or None

    def _shares_reason(self) -> list[str]:
        began, own_began, then = self._at_start
        now, elapsed = processor(self._root), self._now() - began
        if now is None or then is None or elapsed <= 0:
            return []
        others = (now.busy_s - then.busy_s - (self._own_s() - own_began)) / elapsed
        stolen, cores = (now.stolen_s - then.stolen_s) / elapsed, now.cores
        found = []
        if others > OTHERS_SHARE * cores:
            found.append(f"other processes took {others:.2f} of {cores} cores")
        if stolen > STOLEN_SHARE * cores:
            found.append(f"the hypervisor took {stolen:.2f} of {cores} cores")
        return found
