"""The devices of the campaign: daemons with their agents, some of whose clocks are off, some on a small disk."""

import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.system.daemons import Daemon, launch
from tests.system.fleet.site import run_agent, state

YEAR_S = 365 * 86400
CLOCK = "import time\n_time = time.time\ntime.time = lambda: _time() + {shift}\n"


@dataclass
class Device:
    """One device. shift_s: by how much its agent's clock is off."""

    name: str
    folder: Path
    daemon: Daemon
    shift_s: int = 0

    def round(self) -> None:
        """Run the agent once; what it tells is read from the repository. It may fail: its disk may be full."""
        environment = {"PYTHONPATH": str(self.folder / "clock")} if self.shift_s else {}
        with contextlib.suppress(AssertionError):
            run_agent(self.daemon.config, self.folder, self.daemon.endpoint, environment)


def device_in(folder: Path, number: int, fleet: str, before: Path) -> Device:
    """Start a device that serves a family of its own until its first plan; the clock of one in five is off.

    fleet: its [fleet]. before: the folder of its own family.
    """
    shift_s = {1: YEAR_S, 3: -YEAR_S}.get(number % 10, 0)
    (folder / "clock").mkdir(parents=True)
    (folder / "clock" / "sitecustomize.py").write_text(CLOCK.format(shift=shift_s))
    models = f'[models]\nstarter = false\npaths = ["{before}"]\n[server]\nworkers = 1\n'
    config = f"{models}{fleet.replace('reserve_mb = 1', 'reserve_mb = 0')}"
    return Device(f"device-{number}", folder, launch(folder, config, env=state(folder)), shift_s)


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A disk of 2 MB in a folder, where this user may mount one; gives the folder."""
    folder.mkdir(parents=True)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], check=False)
    try:
        yield folder
    finally:
        if done.returncode == 0:
            subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk: Path) -> None:
    """Leave no room on a disk."""
    with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
