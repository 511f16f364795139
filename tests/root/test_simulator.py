"""The simulator of power sensors as processes see it: files, values that move, reads that block, faults, the truth."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.simulator import Simulator, SimulatorError, constant, following, function, level, square, trees
from tests.simulator.starting import Simulate, wait_until

S = 1_000_000_000
REPOSITORY = Path(__file__).parents[2]
BOARDS = REPOSITORY / "tests/data/sysfs"

IIO = "bus/i2c/devices/0-0041/iio:device1"
HWMON = "bus/i2c/devices/1-0040/hwmon/hwmon3"


@pytest.mark.parametrize("board", ["jetson-tx2", "jetson-orin-nano"])
def test_every_file_folder_and_link_of_a_tree_is_there(board: str, tmp_path: Path) -> None:
    def listing(root: Path) -> list[tuple[str, str, str]]:
        found = []
        for folder, folders, files in os.walk(root):
            for path in (Path(folder, name) for name in folders + files):
                kind = "link" if path.is_symlink() else "folder" if path.is_dir() else "file"
                found.append((path.relative_to(root).as_posix(), kind, str(path.readlink()) if kind == "link" else ""))
        return sorted(found)

    with Simulator(BOARDS / board, tmp_path / "sys", driver="free") as simulator:
        assert listing(simulator.root) == listing(BOARDS / board)
        model = "firmware/devicetree/base/model"
        assert (simulator.root / model).read_bytes() == (BOARDS / board / model).read_bytes()


def test_a_file_that_is_changed_in_the_tree_is_changed_in_the_simulator(simulate: Simulate, tmp_path: Path) -> None:
    limit = simulate(trees.iio).root / IIO / "crit_current_limit_0"
    assert limit.read_text() == "32760\n"
    (tmp_path / "tree" / IIO / "crit_current_limit_0").write_text("1000\n")
    assert (limit.read_text(), limit.stat().st_size) == ("1000\n", 4096)  # the size that sysfs says


def test_values_are_in_the_chips_steps(simulate: Simulate) -> None:
    folder = simulate(trees.iio, power=constant(3.0)).root / IIO
    # Sags by 3.2 mV to 18.9968 V: 2,375 steps. 0.15792 A through 10 mOhm is 1.579 mV: 39 steps, 1,560 uV.
    assert (folder / "in_voltage0_input").read_text() == "19000\n"
    assert (folder / "in_current0_input").read_text() == "156\n"
    assert (folder / "in_power0_input").read_text() == "2964\n"
    # 0.9 of the power: 0.1421 A is 1.421 mV, 36 steps.
    assert (folder / "in_current1_input").read_text() == "144\n"
    assert (folder / "in_current2_input").read_text() == "0\n"  # not connected


def test_each_read_of_an_open_file_asks_anew(simulate: Simulate) -> None:
    simulator = simulate(trees.iio, power=level(3.0), chip=0x7007)
    with (simulator.root / IIO / "in_power0_input").open("rb") as file:
        assert os.pread(file.fileno(), 64, 0) == b"2964\n"
        assert os.pread(file.fileno(), 64, 2) == b"64\n"  # the rest of what was read, as sysfs keeps it
        simulator.level_file.write_text("8.0")
        written_ns = time.monotonic_ns()
        wait_until(lambda: time.monotonic_ns() - written_ns > 2 * 840_000)
        # 18.9916 V are 2,374 steps, 18,992 mV. 0.4212 A is 4.212 mV, 105 steps: 420 mA.
        assert os.pread(file.fileno(), 64, 0) == b"7976\n"


def test_a_value_is_repeated_until_the_chip_has_a_new_one(simulate: Simulate) -> None:
    simulator = simulate(trees.iio, power=function("tests.simulator.waves:rising"), chip=0x7E07)  # 860 ms for a cycle
    with (simulator.root / IIO / "in_current0_input").open("rb") as file:
        begin_ns = time.monotonic_ns()
        seen = [os.pread(file.fileno(), 64, 0) for _ in iter(lambda: time.monotonic_ns() - begin_ns < 2 * S, False)]
        took_ns = time.monotonic_ns() - begin_ns
    changes = sum(a != b for a, b in itertools.pairwise(seen))
    assert len(seen) > 10 * changes
    assert 1 <= changes <= took_ns / 860_160_000 + 1


def test_mainlines_driver_waits_for_each_conversion(simulate: Simulate) -> None:
    folder = simulate(trees.hwmon, chip=0x7127, sag_mohm=0.0).root / HWMON
    with (folder / "in1_input").open("rb") as volts, (folder / "curr1_input").open("rb") as amps:
        begin_ns = time.monotonic_ns()
        for _ in range(10):
            assert os.pread(volts.fileno(), 64, 0) == b"5000\n"
            assert os.pread(amps.fileno(), 64, 0) == b"600\n"
        # Between one read and the next a cycle of 6.6 ms ended: 19 ends lie 18 cycles apart.
        assert time.monotonic_ns() - begin_ns >= 18 * 6_600_000


def test_without_waiting_hwmon_repeats_values_too(simulate: Simulate) -> None:
    simulator = simulate(trees.hwmon, driver="free", power=function("tests.simulator.waves:rising"), chip=0x7E07)
    with (simulator.root / HWMON / "curr1_input").open("rb") as amps:
        begin_ns = time.monotonic_ns()
        seen = {os.pread(amps.fileno(), 64, 0) for _ in range(50)}
        took_ns = time.monotonic_ns() - begin_ns
    assert len(seen) <= took_ns / 860_160_000 + 2


def test_the_reads_of_one_bus_take_their_time(simulate: Simulate) -> None:
    folder = simulate(trees.iio, transfer_us=2000.0).root / IIO
    with (folder / "in_power0_input").open("rb") as file:
        begin_ns = time.monotonic_ns()
        for _ in range(10):
            os.pread(file.fileno(), 64, 0)
        assert time.monotonic_ns() - begin_ns >= 20_000_000


def test_the_other_sensors_are_live_too(simulate: Simulate) -> None:
    def write(root: Path) -> Path:
        trees.ina238(root)
        return trees.rapl(root)

    simulator = simulate(write, power=constant(24.0), shares={"VIN": 1.0, "package-0": 0.5}, sag_mohm=0.0)
    vin = simulator.root / "devices/i2c-2/2-0044/hwmon/hwmon5"
    assert [(vin / name).read_text() for name in ("in1_input", "curr1_input", "power1_input")] == [
        "12000\n",
        "2000\n",
        "24000000\n",
    ]
    counter = simulator.root / "class/powercap/intel-rapl:0/energy_uj"
    before_ns = time.monotonic_ns()
    first_uj, begin_ns = int(counter.read_text()), time.monotonic_ns()
    wait_until(lambda: time.monotonic_ns() - begin_ns > S // 5)
    moved_uj = (int(counter.read_text()) - first_uj) % 1_000_000_000  # it has wrapped around, or will
    assert moved_uj >= 12.0 * (0.2 - 0.002) * 1e6
    assert moved_uj <= 12.0 * ((time.monotonic_ns() - before_ns) / S + 0.002) * 1e6 + 62


def test_the_truth_is_the_energy_of_the_trace(simulate: Simulate) -> None:
    simulator = simulate(trees.iio, power=square(period_s=0.1, duty=0.25, low_w=3.0, high_w=8.0))
    begin_ns = simulator.begin_ns
    wait_until(lambda: time.monotonic_ns() - begin_ns > S // 2)
    # A period of 100 ms: 25 ms of 8 W and 75 ms of 3 W, 0.425 J.
    assert simulator.truth_j("VDD_IN", begin_ns, begin_ns + S // 2) == pytest.approx(2.125)
    assert simulator.truth_j(["VDD_IN", "VDD_CPU"], begin_ns, begin_ns + S // 2) == pytest.approx(1.9 * 2.125)
    assert simulator.truth_j(None, begin_ns + 20_000_000, begin_ns + 30_000_000) == pytest.approx(0.04 + 0.015)
    with pytest.raises(SimulatorError, match="lies in the future"):
        simulator.truth_j(None, begin_ns, time.monotonic_ns() + 100 * S)
    with pytest.raises(SimulatorError, match="there is no rail VDD_GPU: there are VDD_IN, VDD_CPU"):
        simulator.truth_j("VDD_GPU", begin_ns, begin_ns + 1)


def test_a_level_is_true_from_the_moment_it_is_written(simulate: Simulate) -> None:
    simulator = simulate(trees.iio, power=level(3.0))
    before_ns = time.monotonic_ns()
    simulator.level_file.write_text("7.5\n")
    after_ns = time.monotonic_ns()
    wait_until(lambda: time.monotonic_ns() > after_ns + 10_000_000)
    assert simulator.truth_j(None, after_ns, after_ns + 10_000_000) == pytest.approx(0.075)
    assert simulator.truth_j(None, before_ns - 1_000_000, before_ns) == pytest.approx(0.003)
    with pytest.raises(OSError, match="Invalid argument"):
        simulator.level_file.write_text("much")


WORK = """
import subprocess, sys, time
sys.stdin.readline()
def work():
    end = time.process_time() + 0.3
    while time.process_time() < end: pass
if len(sys.argv) > 1:
    child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdin.write(b"go\\n"); child.stdin.flush(); child.stdout.readline()
work()
print("done", flush=True)
sys.stdin.readline()
"""


def test_the_work_of_a_process_and_its_children_makes_the_power(simulate: Simulate) -> None:
    simulator = simulate(trees.iio, power=following(idle_w=3.0, busy_w=5.0))
    with subprocess.Popen([sys.executable, "-c", WORK, WORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        simulator.follow(process.pid)
        begin_ns = time.monotonic_ns()
        process.stdin.write(b"go\n")
        process.stdin.flush()
        process.stdout.readline()
        end_ns = time.monotonic_ns()
        wait_until(lambda: time.monotonic_ns() > end_ns + S // 10)
        end_ns = time.monotonic_ns()
        busy_j = simulator.truth_j(None, begin_ns, end_ns) - 3.0 * (end_ns - begin_ns) / S
        process.kill()
    # Two processes of 0.3 s, and what it takes to start Python and a child.
    assert 5.0 * 0.59 < busy_j < 5.0 * 2.0


def test_a_process_that_is_not_there_cannot_be_followed(simulate: Simulate) -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    with pytest.raises(SimulatorError, match=f"there is no process {process.pid}"):
        simulate(trees.iio, power=following(idle_w=3.0, busy_w=5.0)).follow(process.pid)


def test_a_channel_that_is_switched_off_has_no_data(simulate: Simulate) -> None:
    def write(root: Path) -> Path:
        folder = trees.hwmon(root)
        (folder / "in3_enable").write_text("0\n")
        return folder

    folder = simulate(write, driver="free").root / HWMON
    with pytest.raises(OSError, match="No data available"):
        (folder / "curr3_input").read_text()
    assert (folder / "in3_label").read_text() == "VDD_SOC\n"


def test_a_tree_without_sensors_is_refused_and_nothing_stays_mounted(simulate: Simulate, tmp_path: Path) -> None:
    def write(root: Path) -> Path:
        root.mkdir()
        return root

    with pytest.raises(SimulatorError, match="there is no sensor in"):
        simulate(write)
    assert not (tmp_path / "sys").is_mount()


HOLD = """
import sys, time
from pathlib import Path
from tests.simulator import Simulator
with Simulator(Path(sys.argv[1]), Path(sys.argv[2])):
    print("up", flush=True)
    time.sleep(600)
"""


def test_when_its_test_is_killed_the_simulator_goes_too(tmp_path: Path) -> None:
    trees.iio(tmp_path / "tree")
    arguments = [str(tmp_path / "tree"), str(tmp_path / "sys")]
    with subprocess.Popen([sys.executable, "-c", HOLD, *arguments], cwd=REPOSITORY, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"up\n"
        assert (tmp_path / "sys").is_mount()
        holder.kill()
    wait_until(lambda: str(tmp_path / "sys") not in Path("/proc/mounts").read_text())
