"""The files of a TX2 whose power, mode and sensors a test changes while a daemon reads them."""

from pathlib import Path
from typing import Any

import pytest

from jetsel.base.config import Power
from jetsel.power.idle import IdlePower, save_idle
from jetsel.power.machine import BoardFacts, read_facts
from tests.data.sysfs_trees import write
from tests.system.daemons import Peer
from tests.waiting import until

IDLE_W = 3.0
MODES = "< POWER_MODEL ID=0 NAME=MAXN >\n< POWER_MODEL ID=1 NAME=MAXQ >\n"


class Board:
    """The files of a TX2 below a folder, with what nvpmodel keeps beside them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sysfs = write("jetson-tx2", root / "sys")
        (self._power,) = self.sysfs.glob("devices/3160000.i2c/i2c-0/0-0041/iio:device*/in_power0_input")
        (root / "etc").mkdir()
        (root / "etc/nvpmodel.conf").write_text(MODES)
        (root / "var/lib/nvpmodel").mkdir(parents=True)
        self.mode(0)
        self.power(IDLE_W)

    def power(self, watts: float) -> None:
        """Have VDD_IN read this; in one write of one length, as it is read all the time."""
        with self._power.open("r+b", buffering=0) as file:
            file.write(b"%06d\n" % round(watts * 1e3))
            file.truncate()

    def mode(self, number: int) -> None:
        (self.root / "var/lib/nvpmodel/status").write_text(f"pmode:{number:04d} fmode:quiet\n")

    def facts(self) -> BoardFacts:
        """What the board says of itself now."""
        return read_facts(Power(sysfs=str(self.sysfs)))

    def calibrate(self, mean_w: float = IDLE_W) -> None:
        """Write down the idle power as `jetsel power calibrate` would find it here."""
        idle = IdlePower(
            mean_w=mean_w,
            half_width_w=0.0,
            drift_w_per_min=0.0,
            samples=10_000,
            seconds=10.0,
            rails=("VDD_IN",),
            board="jetson-tx2",
            power_mode=self.facts().power_mode.value,
            measured_at="2026-11-21T12:00:00Z",
            facts=self.facts(),
        )
        save_idle(idle, self.root / "idle")

    def config(self, *more: str) -> str:
        lines = ("[power]", f'sysfs = "{self.sysfs}"', f'calibration = "{self.root / "idle"}"', *more)
        return "[server]\n" + "\n".join(lines) + "\n"


def power_of(peer: Peer) -> dict[str, Any]:
    found: dict[str, Any] = peer.status()["power"]
    return found


def reads(peer: Peer, watts: float) -> None:
    until(lambda: power_of(peer)["watts"] == pytest.approx(watts))
