"""One look at the board: jetson-stats where it is asked and answers, the kernel's files for the rest."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from jetsel.power.machine import clocks, current, heat, system
from jetsel.power.machine.facts import Clock, Fact, Facts, Known, Throttling
from jetsel.power.sysfs import root_of

if TYPE_CHECKING:
    from jetsel.power.machine.service import Service

NOT_ASKED = "not asked: power.jtop is false"


class Machine:
    """Asked as often as once a second, by one thread at a time. Nothing raises: what cannot be read is None."""

    def __init__(self, sysfs: Path | str = "/sys", jtop: bool = False) -> None:
        """sysfs: its root; proc, etc and var lie beside it. jtop: ask jetson-stats."""
        self._sysfs = root_of(str(sysfs))
        self._root = self._sysfs.parent
        self._service = _service() if jtop else None

    def facts(self, wait_s: float = 0.0) -> Facts:
        """Return all that is known now. wait_s: how long jetson-stats may take for its first answer.

        Measurements are kept under board, release and power mode: those are named by the files where they tell, so that
        the names stay when jetson-stats comes or goes; it fills the gaps. On JetPack and the GPU's load it comes first.
        """
        seen = NOT_ASKED if self._service is None else self._service.last(wait_s)
        said = None if isinstance(seen, str) else seen
        release = _filled(system.l4t(self._root), said.l4t if said else None)
        cpu, gpu = self.cpu_clocks(), self.gpu_clocks()
        load = None if said is None else said.gpu_load
        return Facts(
            board=_filled(self.board(), said.board if said else None),
            l4t=release,
            jetpack=Fact(said.jetpack) if said is not None and said.jetpack else system.jetpack(release),
            power_mode=_filled(self.power_mode(), said.power_mode if said else None),
            jetson_clocks=clocks.pinned(cpu, gpu),
            cores=clocks.cores(self._sysfs),
            cpu_clocks=cpu,
            gpu_clocks=gpu,
            gpu_load=clocks.gpu_load(self._sysfs) if load is None else Known(load),
            zones_c=heat.zones_c(self._sysfs),
            throttling=Throttling(
                hot=self.hot(),
                cooled=heat.cooled(self._sysfs),
                over_current=current.alarms(self._sysfs),
                events=current.events(self._sysfs),
            ),
            jtop=Fact(None, seen) if isinstance(seen, str) else Fact(seen.version),
        )

    def board(self) -> Fact:
        """Return the board's name, by its device tree."""
        return system.board(self._sysfs)

    def power_mode(self) -> Fact:
        """Return number and name of the power mode, by nvpmodel's files."""
        return system.power_mode(self._root)

    def cpu_clocks(self) -> Known[list[Clock]]:
        """Return the clock of each cluster of cores."""
        return clocks.cpu(self._sysfs)

    def gpu_clocks(self) -> Known[list[Clock]]:
        """Return the clock of each GPU."""
        return clocks.gpu(self._sysfs)

    def hot(self) -> Known[list[str]]:
        """Name the thermal zones that have reached a trip point at which Linux slows down or stops."""
        return heat.hot(self._sysfs)

    def close(self) -> None:
        """Let go of jetson-stats."""
        if self._service is not None:
            self._service.close()

    def __enter__(self) -> Machine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _service() -> Service:
    from jetsel.power.machine.service import Service  # brings multiprocessing with it

    return Service()


def _filled(read: Fact, said: str | None) -> Fact:
    return Fact(said) if read.value is None and said else read
