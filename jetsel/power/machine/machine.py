"""One look at the board: jetson-stats where it is asked and answers, the kernel's files for the rest."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from jetsel.power.machine import clocks, system, throttling
from jetsel.power.machine.facts import Fact, Facts, Known
from jetsel.power.settings import Settings
from jetsel.power.sysfs import root_of

if TYPE_CHECKING:
    from jetsel.power.machine.service import Service

JTOP_S = 10.0  # jetson-stats looks for the libraries of the board before it answers
NOT_ASKED = "not asked: power.jtop is false"
BY_JTOP = "jetson-stats tells it, where power.jtop asks it"


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
        the names stay when jetson-stats comes or goes; it fills the gaps. On the GPU's load it comes first, and
        JetPack it alone knows.
        """
        seen = NOT_ASKED if self._service is None else self._service.last(wait_s)
        said = None if isinstance(seen, str) else seen
        cpu, gpu = clocks.cpu(self._sysfs), clocks.gpu(self._sysfs)
        load = None if said is None else said.gpu_load
        return Facts(
            board=_filled(system.board(self._sysfs), said.board if said else None),
            l4t=_filled(system.l4t(self._root), said.l4t if said else None),
            jetpack=_filled(Fact(None, BY_JTOP), said.jetpack if said else None),
            power_mode=_filled(system.power_mode(self._root), said.power_mode if said else None),
            jetson_clocks=clocks.pinned(cpu, gpu),
            cores=clocks.cores(self._sysfs),
            cpu_clocks=cpu,
            gpu_clocks=gpu,
            gpu_load=clocks.gpu_load(self._sysfs) if load is None else Known(load),
            zones_c=throttling.zones_c(self._sysfs),
            slowed=throttling.slowed(self._sysfs),
            alarms=throttling.alarms(self._sysfs),
            battery=system.battery(self._sysfs),
            jtop=Fact(None, seen) if isinstance(seen, str) else Fact(seen.version),
        )

    def close(self) -> None:
        """Let go of jetson-stats."""
        if self._service is not None:
            self._service.close()


def look(power: Settings) -> Facts:
    """Return what the board that the configuration names says of itself, once."""
    with closing(Machine(power.sysfs, power.jtop)) as machine:
        return machine.facts(wait_s=JTOP_S if power.jtop else 0.0)


def _service() -> Service:
    from jetsel.power.machine.service import Service  # brings multiprocessing with it

    return Service()


def _filled(read: Fact, said: str | None) -> Fact:
    return Fact(said) if read.value is None and said else read
