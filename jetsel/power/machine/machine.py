"""One look at the board: jetson-stats where it is asked and answers, the kernel's files for the rest."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from jetsel.power.machine import clocks, system
from jetsel.power.machine.clocks import Clocks
from jetsel.power.machine.current import Current
from jetsel.power.machine.facts import Clock, Fact, Facts, Known, Pinned, Throttling
from jetsel.power.machine.heat import Heat
from jetsel.power.sensors.sysfs import root_of

if TYPE_CHECKING:
    from jetsel.power.machine.service import Seen, Service

NOT_ASKED = "not asked: power.jtop is false"
JTOP_HOW = "jetson-stats says so"


class Machine:
    """Asked as often as once a second, by one thread at a time. Nothing raises: what cannot be read is None."""

    def __init__(self, sysfs: Path | str = "/sys", jtop: bool = False) -> None:
        """sysfs: its root; where it is named sys, proc, etc and var lie beside it. jtop: ask jetson-stats."""
        self._sysfs = root_of(str(sysfs))
        self._root = system.beside(self._sysfs)
        self._clocks = Clocks(self._sysfs)
        self._heat = Heat(self._sysfs)
        self._current = Current(self._sysfs)
        self._service = _service() if jtop else None

    def facts(self, wait_s: float = 0.0) -> Facts:
        """Return all that is known now. wait_s: how long jetson-stats may take for its first answer.

        Measurements are kept under board, release and power mode: those are named by the files where they tell, so that
        the names stay when jetson-stats comes or goes; it fills the gaps. On JetPack, jetson_clocks (which it looks at
        as root) and the GPU's load it comes first. Throttling is read from the files alone: it has no word for it.
        """
        seen = NOT_ASKED if self._service is None else self._service.last(wait_s)
        said = None if isinstance(seen, str) else seen
        release = _filled(system.l4t(self._root), said.l4t if said else None)
        cpu, gpu, load = self.cpu_clocks(), self.gpu_clocks(), self._clocks.gpu_load()
        if said is not None and said.gpu_load is not None:
            load = Known(said.gpu_load)
        return Facts(
            board=_filled(self.board(), said.board if said else None),
            l4t=release,
            jetpack=Fact(said.jetpack) if said is not None and said.jetpack else system.jetpack(release),
            power_mode=_filled(self.power_mode(), said.power_mode if said else None),
            jetson_clocks=_pinned(said, cpu, gpu),
            cores=self._clocks.cores(),
            cpu_clocks=cpu,
            gpu_clocks=gpu,
            gpu_load=load,
            temperatures_c=_with(self._heat.temperatures_c(), said),
            throttling=self._throttling(gpu, load),
            jtop=Fact(None, seen) if isinstance(seen, str) else Fact(seen.version),
        )

    def board(self) -> Fact:
        """Return the board's name, by its device tree."""
        return system.board(self._sysfs, self._root)

    def power_mode(self) -> Fact:
        """Return number and name of the power mode, by nvpmodel's files."""
        return system.power_mode(self._root)

    def cpu_clocks(self) -> Known[list[Clock]]:
        """Return the clock of each cluster of cores."""
        return self._clocks.cpu()

    def gpu_clocks(self) -> Known[list[Clock]]:
        """Return the clock of each GPU."""
        return self._clocks.gpu()

    def hot(self) -> Known[list[str]]:
        """Name the thermal zones that have reached a trip point at which Linux slows down or stops."""
        return self._heat.hot()

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

    def _throttling(self, gpu: Known[list[Clock]], load: Known[float]) -> Throttling:
        return Throttling(
            hot=self.hot(),
            cooled=self._heat.cooled(),
            over_current=self._current.alarms(),
            events=self._current.events(),
            held=clocks.held(gpu, load),
        )


def _service() -> Service:
    from jetsel.power.machine.service import Service  # brings multiprocessing with it

    return Service()


def _filled(read: Fact, said: str | None) -> Fact:
    return Fact(said) if read.value is None and said else read


def _pinned(said: Seen | None, cpu: Known[list[Clock]], gpu: Known[list[Clock]]) -> Pinned:
    if said is not None and said.jetson_clocks is not None:
        return Pinned(said.jetson_clocks, how=JTOP_HOW)
    return clocks.pinned(cpu, gpu)


def _with(read: Known[dict[str, Known[float]]], said: Seen | None) -> Known[dict[str, Known[float]]]:
    """The zones of the files, and those that jetson-stats alone sees; it names the same zone as the kernel does."""
    if said is None or not said.temperatures_c:
        return read
    lower = {name.lower() for name in read.value or {}}
    more = {name: known for name, known in said.temperatures_c.items() if not _same_zone(name.lower(), lower)}
    return Known({**(read.value or {}), **more})


def _same_zone(name: str, zones: set[str]) -> bool:
    return any(zone in (name, f"{name}-therm", f"{name}-thermal", f"thermal-{name}") for zone in zones)
