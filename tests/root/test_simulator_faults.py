"""The faults of the simulator of power sensors: on request, of one rail, and gone again."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests.simulator import SimulatorError, trees
from tests.simulator.starting import Simulate, wait_until

S = 1_000_000_000
IIO = "bus/i2c/devices/0-0041/iio:device1"


@pytest.mark.parametrize(("kind", "number"), [("eio", errno.EIO), ("enodata", errno.ENODATA), ("gone", errno.ENODEV)])
def test_a_rail_fails_alone_and_heals(simulate: Simulate, kind: str, number: int) -> None:
    simulator = simulate(trees.iio)
    folder = simulator.root / IIO
    with (folder / "in_power0_input").open("rb") as file, (folder / "in_power1_input").open("rb") as other:
        simulator.fail("VDD_IN", kind)
        with pytest.raises(OSError, match=os.strerror(number)) as caught:
            os.pread(file.fileno(), 64, 0)
        assert caught.value.errno == number
        assert int(os.pread(other.fileno(), 64, 0)) > 2000
        simulator.heal("VDD_IN")
        if kind != "gone":
            assert os.pread(file.fileno(), 64, 0) == b"2964\n"
    assert (folder / "in_power0_input").read_text() == "2964\n"


def test_a_rail_that_is_gone_has_no_files_until_it_returns(simulate: Simulate) -> None:
    simulator = simulate(trees.iio)
    folder = simulator.root / IIO
    with (folder / "in_power0_input").open("rb") as file:
        simulator.fail("VDD_IN", "gone")
        assert not (folder / "in_power0_input").exists()
        assert sorted(path.name for path in folder.iterdir() if "0" in path.name) == []
        assert (folder / "rail_name_1").read_text() == "VDD_CPU\n"
        simulator.heal()
        assert (folder / "rail_name_0").read_text() == "VDD_IN\n"
        with pytest.raises(OSError, match="No such device"):  # a new file has come in its place
            os.pread(file.fileno(), 64, 0)


def test_an_unbound_driver_takes_its_folder_and_all_rails(simulate: Simulate) -> None:
    simulator = simulate(trees.iio)
    folder = simulator.root / IIO
    with (folder / "in_power1_input").open("rb") as file:
        simulator.fail("VDD_IN", "unbound")
        assert not folder.exists()
        assert folder.parent.is_dir()
        with pytest.raises(OSError, match="No such device"):
            os.pread(file.fileno(), 64, 0)
        simulator.heal("VDD_CPU")
    assert (folder / "in_power0_input").read_text() == "2964\n"


def test_a_rail_can_say_nothing(simulate: Simulate) -> None:
    simulator = simulate(trees.iio)
    simulator.fail(["VDD_IN", "VDD_CPU"], "empty")
    folder = simulator.root / IIO
    assert [(folder / f"in_power{channel}_input").read_bytes() for channel in (0, 1)] == [b"", b""]


def test_a_rail_that_blocks_holds_up_nobody_else(simulate: Simulate) -> None:
    simulator = simulate(trees.iio)
    folder = simulator.root / IIO
    simulator.fail("VDD_IN", "block", seconds=2.0)
    took_ns: list[int] = []

    def read() -> None:
        begin_ns = time.monotonic_ns()
        assert (folder / "in_power0_input").read_text() == "2964\n"
        took_ns.append(time.monotonic_ns() - begin_ns)

    blocked = threading.Thread(target=read)
    blocked.start()
    (folder / "in_power1_input").read_text()
    assert not took_ns
    blocked.join()
    assert took_ns[0] >= 2 * S


def test_a_reader_that_is_killed_while_it_waits_ends(simulate: Simulate) -> None:
    simulator = simulate(trees.iio)
    simulator.fail("VDD_IN", "block", seconds=600.0)
    with subprocess.Popen(["cat", str(simulator.root / IIO / "in_power0_input")]) as reader:
        opened = Path(f"/proc/{reader.pid}/fd")
        wait_until(lambda: any(each.readlink().name == "in_power0_input" for each in opened.iterdir()))
        time.sleep(0.1)  # most likely it reads by now; if not, it ends as well
        reader.kill()
        assert reader.wait(30) == -signal.SIGKILL
    assert int((simulator.root / IIO / "in_power1_input").read_text()) > 2000


def test_an_unknown_fault_or_rail_is_refused(simulate: Simulate) -> None:
    simulator = simulate(trees.iio)
    with pytest.raises(SimulatorError, match="there is no fault smoke: there are eio"):
        simulator.fail("VDD_IN", "smoke")
    with pytest.raises(SimulatorError, match="there is no rail VDD_GPU"):
        simulator.fail("VDD_GPU", "eio")
