"""Whether the machine was fit to be timed on: others' work, stolen time, clocks and temperatures meanwhile."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from jetsel.power.machine import clocks, heat
from jetsel.power.sysfs import root_of, text

OTHERS_SHARE = 0.05  # of all cores; an idle desktop or board takes 1 to 3 %
STOLEN_SHARE = 0.02  # of all cores, by the hypervisor
CLOCK_SHARE = 0.9  # of the highest clock that the power mode allows


class Watch:
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
        self._at_start = (now(), own_s(), _processor_ticks(self._root))
        self._lowest: dict[str, float] = {}  # share of the highest clock, of CPU and GPU
        self._hot: str | None = None

    def look(self, gpu: bool = False) -> None:
        """Look at clocks and temperatures; call it while a core is busy with what is timed. gpu: whether it was too."""
        gpus = clocks.gpu(self._sysfs).value if gpu else None
        for name, read in (("CPU", clocks.cpu(self._sysfs).value), ("GPU", gpus)):
            if read:  # idle cores slow down: the fastest is the one that worked
                share = max(clock.share for clock in read)
                self._lowest[name] = min(share, self._lowest.get(name, share))
        self._hot = self._hot or next(iter(heat.hot(self._sysfs)), None)

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
        began, own_began, ticks_began = self._at_start
        ticks = _processor_ticks(self._root)
        elapsed = self._now() - began
        if ticks is None or ticks_began is None or elapsed <= 0:
            return []
        per_core_s = os.sysconf("SC_CLK_TCK") * elapsed
        busy = (ticks[0] - ticks_began[0]) / per_core_s
        stolen = (ticks[1] - ticks_began[1]) / per_core_s
        others = busy - (self._own_s() - own_began) / elapsed
        cores = ticks[2]
        found = []
        if others > OTHERS_SHARE * cores:
            found.append(f"other processes took {others:.2f} of {cores} cores")
        if stolen > STOLEN_SHARE * cores:
            found.append(f"the hypervisor took {stolen:.2f} of {cores} cores")
        return found


def _processor_ticks(root: Path) -> tuple[int, int, int] | None:
    """Return the ticks that all cores were busy and that were stolen since start-up, and the number of cores.

    proc(5): user, nice, system, idle, iowait, irq, softirq, steal, ...
    """
    lines = text(root / "proc/stat").splitlines()
    total = lines[0].split()[1:] if lines else []
    if len(total) < 8:
        return None
    user, nice, system, _, _, irq, softirq, steal = (int(ticks) for ticks in total[:8])
    cores = sum(line.startswith("cpu") for line in lines) - 1
    return user + nice + system + irq + softirq, steal, cores
