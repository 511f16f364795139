"""The simulator as a test holds it: starts its process, mounts the tree, gives orders, takes all down at the end."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from types import TracebackType
from typing import Literal

import msgspec

from tests.simulator.mounting import mount, unavailable, unmount
from tests.simulator.power import Power, constant
from tests.simulator.setup import Answer, Fail, Follow, Order, Rails, Setup, Truth
from tests.simulator.tree import LEVEL

_REPOSITORY = Path(__file__).parents[2]


class SimulatorError(Exception):
    """The simulator cannot do that; the text says why."""


class Simulator:
    """A tree of sensor files with live values, mounted at a folder while the `with` block runs.

    tree: a folder of sysfs files (bus/, class/, devices/, ...). mountpoint: made where it is missing. power: of the
    whole board (see power.py). chip: the configuration register of each chip, None: as after power-on. 0x7127 of an
    INA3221 is 6.6 ms for a cycle, 0x7007 is 0.84 ms, 0x7C07 is 430 ms. driver: "auto" (as the tree's kernel has it:
    `iio` does not block, `hwmon` waits for each conversion), "waits" or "free". shares: of the board's power, by rail;
    one that is not named has none. shunts_mohm: by rail, where the tree does not say. sag_mohm: of the supplies.
    transfer_us: how long a read takes on the I2C bus.

    root: the mountpoint. level_file: where power=level(...) is written. begin_ns: CLOCK_MONOTONIC when power and chips
    began. SimulatorError: it cannot be done; the text says why.
    """

    def __init__(
        self,
        tree: Path,
        mountpoint: Path,
        *,
        power: Power | None = None,
        chip: int | None = None,
        driver: Literal["auto", "waits", "free"] = "auto",
        shares: Mapping[str, float] | None = None,
        shunts_mohm: Mapping[str, float] | None = None,
        sag_mohm: float = 20.0,
        transfer_us: float = 0.0,
    ) -> None:
        self.root = mountpoint
        self.level_file = mountpoint / LEVEL
        self.begin_ns = 0
        self._setup = Setup(
            tree=str(tree.absolute()),
            mountpoint=str(mountpoint.absolute()),
            connection=-1,
            begin_ns=0,
            power=power or constant(3.0),
            chip=chip,
            driver=driver,
            shares=dict(shares) if shares is not None else None,
            shunts_mohm=dict(shunts_mohm or {}),
            sag_mohm=sag_mohm,
            transfer_us=transfer_us,
        )
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()  # one order at a time

    def __enter__(self) -> Simulator:
        if (why := unavailable()) is not None:
            raise SimulatorError(why)
        self.root.mkdir(parents=True, exist_ok=True)
        connection = mount(self.root)
        self.begin_ns = time.monotonic_ns()
        setup = msgspec.structs.replace(self._setup, connection=connection, begin_ns=self.begin_ns)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.simulator.process"],
                cwd=_REPOSITORY,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=[connection],
            )
            self._tell(msgspec.json.encode(setup))
        except BaseException:
            self._end()
            raise
        finally:
            os.close(connection)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def rails(self) -> dict[str, float]:
        """Each rail's share of the board's power."""
        found = self._order(Rails()).rails
        assert found is not None
        return found

    def truth_j(self, rails: str | Collection[str] | None, begin_ns: int, end_ns: int) -> float:
        """Return the true energy between two instants of CLOCK_MONOTONIC; rails: a name, names, None for the board."""
        names = [rails] if isinstance(rails, str) else None if rails is None else list(rails)
        joules = self._order(Truth(names, begin_ns, end_ns)).joules
        assert joules is not None
        return joules

    def fail(self, rails: str | Collection[str], kind: str, seconds: float = 1.0) -> None:
        """Give rails a fault of rails.FAULTS; seconds: how long "block" blocks."""
        self._order(Fail([rails] if isinstance(rails, str) else list(rails), kind, seconds))

    def heal(self, rails: str | Collection[str] | None = None) -> None:
        """Take the fault of some rails away, or of all."""
        names = list(self.rails) if rails is None else [rails] if isinstance(rails, str) else list(rails)
        self._order(Fail(names, None, 0.0))

    def follow(self, pid: int) -> None:
        """Make power of the work of a process and its children from now on: with power=following(...)."""
        self._order(Follow(pid))

    def _order(self, order: Order) -> Answer:
        return self._tell(msgspec.json.encode(order))

    def _tell(self, line: bytes) -> Answer:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise SimulatorError("the simulator does not run: use it inside of its `with` block")
        with self._lock:
            process.stdin.write(line + b"\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        if not answer:
            raise SimulatorError(f"the simulator's process ended with {process.wait()}: its error is above")
        found = msgspec.json.decode(answer, type=Answer)
        if found.refused is not None:
            raise SimulatorError(found.refused)
        return found

    def _end(self) -> None:
        unmount(self.root)
        if self._process is not None:
            with self._process as process:
                process.kill()
            self._process = None
