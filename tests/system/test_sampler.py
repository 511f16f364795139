"""The power sampler as a real process: what it samples, and what becomes of it when it is killed or orphaned."""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from jetsel.config import Power
from jetsel.power.integration import inside
from jetsel.power.sampling.reader import Reader
from jetsel.power.sampling.ring import ALL, INDEX, POWER, SIZE, TIME
from jetsel.power.sampling.sampler import Rules, Sampler
from tests.simulator import Simulator, constant, square, unavailable
from tests.waiting import until

TREES = Path(__file__).parents[1] / "data/sysfs"
HEAVY = ("numpy", "cv2", "onnxruntime", "zmq", "typer", "rich")
LIMIT_S = 20.0

Begin = Callable[..., Sampler]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A TX2 whose files a test may change."""
    return Path(shutil.copytree(TREES / "jetson-tx2", tmp_path / "sys", symlinks=True))


@pytest.fixture
def begin(tree: Path) -> Iterator[Begin]:
    """Start samplers that end with the test."""
    running: list[Sampler] = []

    def start(rules: Rules | None = None, changed: Callable[[], None] = lambda: None, **power: object) -> Sampler:
        sampler = Sampler(Power(**{"sysfs": str(tree), **power}), changed, rules or Rules())
        running.append(sampler)
        assert sampler.ready(LIMIT_S)
        return sampler

    yield start
    for sampler in running:
        with contextlib.suppress(ProcessLookupError, TypeError):
            os.kill(sampler.pid, signal.SIGCONT)
        sampler.stop()


def power_file(root: Path) -> Path:
    """The file of VDD_IN."""
    label = next(path for path in root.rglob("rail_name_*") if path.read_text().strip() == "VDD_IN")
    return label.with_name(f"in_power{label.name[-1]}_input")


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_a_window_has_the_samples_between_its_ends_and_one_on_each_side(begin: Begin, tree: Path):
    power_file(tree).write_text("5250\n")
    sampler = begin()
    assert sampler.total_of == ("VDD_IN",)
    assert sampler.reason is None
    until(lambda: sampler.latest())
    sampler.open()
    begin_ns = time.monotonic_ns()
    time.sleep(0.3)
    end_ns = time.monotonic_ns()
    assert sampler.wait(end_ns, LIMIT_S)
    sampler.shut()
    samples = sampler.samples(begin_ns, end_ns)
    inside = (samples.times_ns >= begin_ns) & (samples.times_ns <= end_ns)
    assert inside.sum() >= 10
    assert (~inside).tolist() == [True, *[False] * int(inside.sum()), True]
    assert np.all(np.diff(samples.times_ns) > 0)
    assert samples.power_w == pytest.approx(5.25)
    assert samples.resolution_w is not None
    latest = sampler.latest()
    assert latest is not None
    assert latest[1] == pytest.approx(5.25)


def test_the_process_loads_nothing_heavy(begin: Begin):
    mapped = Path(f"/proc/{begin().pid}/maps").read_text()
    assert not [name for name in HEAVY if f"/{name}" in mapped]
    code = "import sys, jetsel.power.sampling.process; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "jetsel.power.finding" in loaded
    assert not set(HEAVY) & {name.partition(".")[0] for name in loaded}


def test_an_opened_window_wakes_a_process_that_sleeps_for_ten_seconds(begin: Begin):
    sampler = begin(idle_rate_hz=0.1)
    time.sleep(2.5)  # it begins with two seconds of fast sampling
    count = sampler.report().samples
    time.sleep(0.5)
    assert sampler.report().samples == count
    opened_ns = time.monotonic_ns()
    sampler.open()
    assert sampler.wait(opened_ns, 5.0)
    sampler.shut()


def test_a_window_that_is_shut_at_once_is_read_all_the_same(begin: Begin):
    sampler = begin(idle_rate_hz=0.1)
    time.sleep(2.5)
    opened_ns = time.monotonic_ns()
    sampler.open()
    sampler.shut()
    assert sampler.wait(opened_ns, 3.0)


def test_short_lone_windows_have_samples(begin: Begin):
    sampler = begin(idle_rate_hz=50.0)  # so that they come at all times between two slow readings
    time.sleep(2.5)
    for number in range(40):
        time.sleep(0.15 + number * 0.0005)  # it is slow again
        sampler.open()
        begin_ns = time.monotonic_ns()
        time.sleep(0.05)  # a busy machine may take a while
        end_ns = time.monotonic_ns()
        sampler.shut()
        times_ns = sampler.samples(begin_ns, end_ns).times_ns
        assert ((times_ns >= begin_ns) & (times_ns <= end_ns)).sum() >= 2


def test_the_newest_sample_of_a_process_that_hangs_is_not_now(begin: Begin):
    sampler = begin()
    until(lambda: sampler.latest())
    os.kill(sampler.pid, signal.SIGSTOP)
    until(lambda: sampler.latest() is None, 5.0)
    os.kill(sampler.pid, signal.SIGCONT)
    until(lambda: sampler.latest())


def test_a_plain_file_is_new_at_each_read(begin: Begin):
    sampler = begin()
    until(lambda: sampler.report().samples)
    now_ns = time.monotonic_ns()
    assert sampler.samples(now_ns - 10**8, now_ns).bound_s is None
    assert sampler.period_ms == pytest.approx(1.0)


def test_sampling_stays_fast_until_the_last_window_is_shut(begin: Begin):
    sampler = begin(idle_rate_hz=0.1)
    time.sleep(2.5)
    sampler.open()
    sampler.open()
    sampler.shut()
    time.sleep(0.3)  # three times what it lingers
    assert sampler.wait(time.monotonic_ns(), 5.0)
    sampler.shut()
    time.sleep(0.5)
    assert not sampler.wait(time.monotonic_ns(), 0.3)


def test_each_time_of_the_schedule_is_either_read_or_counted_as_missed(begin: Begin):
    sampler = begin()
    sampler.open()
    until(lambda: (sampler.report().achieved_hz or 0) > 0)
    before, began_s = sampler.report(), time.monotonic()
    os.kill(sampler.pid, signal.SIGSTOP)
    time.sleep(0.5)
    os.kill(sampler.pid, signal.SIGCONT)
    until(lambda: sampler.report().missed - before.missed >= 490)
    time.sleep(2.2)
    after, passed_s = sampler.report(), time.monotonic() - began_s
    due = after.samples + after.missed - before.samples - before.missed
    assert due == pytest.approx(1000 * passed_s, abs=2500)  # both reports are up to a second or so old
    assert after.samples - before.samples <= 1000 * (passed_s - 0.5) + 1500  # nothing was made up


def test_a_signal_to_the_whole_group_does_not_end_it(begin: Begin):
    sampler = begin()
    pid = sampler.pid
    os.kill(pid, signal.SIGINT)
    os.kill(pid, signal.SIGTERM)
    time.sleep(0.3)
    assert sampler.pid == pid
    assert sampler.reason is None
    assert sampler.wait(time.monotonic_ns(), LIMIT_S)


def test_one_that_is_killed_is_started_again_and_leaves_a_visible_gap(begin: Begin):
    changes: list[int] = []
    sampler = begin(changed=lambda: changes.append(1))
    until(lambda: sampler.latest())
    begin_ns, seen = time.monotonic_ns(), len(changes)
    assert sampler.wait(begin_ns, LIMIT_S)
    first = sampler.pid
    os.kill(first, signal.SIGKILL)
    until(lambda: sampler.pid not in (first, None) and sampler.reason is None and sampler.latest())
    end_ns = time.monotonic_ns()
    assert sampler.wait(end_ns, LIMIT_S)
    samples = sampler.samples(begin_ns, end_ns)
    assert np.isnan(samples.power_w).sum() == 1
    assert np.isfinite(samples.power_w[[0, -1]]).all()
    assert sampler.report().restarts == 1
    assert len(changes) - seen == 2  # gone, and back


def test_one_that_hangs_is_killed_and_started_again(begin: Begin):
    sampler = begin(Rules(silent_s=1.0))
    until(lambda: sampler.latest())
    first = sampler.pid
    os.kill(first, signal.SIGSTOP)
    until(lambda: sampler.pid not in (first, None) and sampler.reason is None)
    assert not is_alive(first)


def test_one_that_never_says_hello_is_not_waited_for(tree: Path):
    sampler = Sampler(Power(sysfs=str(tree)), rules=Rules(hello_s=0.001, first_pause_s=0.01))
    try:
        until(lambda: sampler.report().restarts >= 2)
        assert "silent" in (sampler.reason or "")
        assert sampler.latest() is None
    finally:
        sampler.stop()


def test_it_dies_with_a_daemon_that_is_killed(tree: Path):
    code = (
        "import sys, time\nfrom jetsel.config import Power\nfrom jetsel.power.sampling.sampler import Sampler\n"
        "sampler = Sampler(Power(sysfs=sys.argv[1]))\nassert sampler.ready(20)\nprint(sampler.pid, flush=True)\n"
        "time.sleep(100)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tree)], stdout=subprocess.PIPE, text=True) as daemon:
        assert daemon.stdout is not None
        pid = int(daemon.stdout.readline())
        assert is_alive(pid)
        daemon.kill()
        daemon.wait(LIMIT_S)
        until(lambda: not is_alive(pid))


def test_a_stopped_sampler_leaves_no_process_and_can_still_be_read(begin: Begin):
    sampler = begin()
    until(lambda: sampler.latest())
    pid = sampler.pid
    sampler.stop()
    assert not is_alive(pid)
    assert len(sampler.samples(0, time.monotonic_ns()).times_ns)


def test_a_rail_that_vanishes_is_a_gap_with_a_reason_until_it_returns(begin: Begin, tree: Path):
    sampler = begin()
    until(lambda: sampler.latest())
    file = power_file(tree)
    text, begin_ns = file.read_text(), time.monotonic_ns()
    file.write_text("")
    until(lambda: sampler.reason)
    assert "VDD_IN" in (sampler.reason or "")
    assert sampler.latest() is None
    file.write_text(text)
    until(lambda: sampler.reason is None and sampler.latest())
    end_ns = time.monotonic_ns()
    samples = sampler.samples(begin_ns, end_ns)
    assert np.isnan(samples.power_w).any()
    until(lambda: sampler.report().failed > 0)
    assert sampler.report().restarts == 0


def test_no_sensor_is_a_reason(begin: Begin):
    sampler = begin(sensor="none")
    assert sampler.reason
    assert sampler.latest() is None
    assert np.isnan(sampler.samples(0, time.monotonic_ns()).power_w).all()


WRITE = """
import mmap, sys, time
from jetsel.power.sampling.ring import SIZE, Writer
writer = Writer(mmap.mmap(int(sys.argv[1]), SIZE), 1)
end_ns = time.monotonic_ns() + round(float(sys.argv[2]) * 1e9)
time_ns = 0
while time_ns % 4096 or time.monotonic_ns() < end_ns:
    time_ns += 1 + time_ns % 1_000_003
    writer.append(time_ns, time_ns * 7919 % 1_000_000_007)
"""


def test_a_reader_beside_a_writer_at_full_speed_never_gets_a_torn_record():
    fd = os.memfd_create("ring")
    os.ftruncate(fd, SIZE)
    fcntl.fcntl(fd, fcntl.F_SETFD, 0)
    reader = Reader(mmap.mmap(fd, SIZE))
    with subprocess.Popen([sys.executable, "-c", WRITE, str(fd), "4"], pass_fds=(fd,)) as writer:
        looks = 0
        last = -1
        while writer.poll() is None:
            newest = reader.newest()
            if not len(newest):
                continue
            now_ns = int(newest[0, TIME])
            assert newest[0, POWER] == now_ns * 7919 % 1_000_000_007
            assert newest[0, INDEX] >= last
            last = int(newest[0, INDEX])
            times_ns, power_w = reader.between(now_ns - 10**10, now_ns)
            if reader.count() - last > ALL.capacity // 2:
                continue  # we were held up: of that time, means are left
            expected_w = np.array([each * 7919 % 1_000_000_007 for each in times_ns.tolist()]) / 1e6
            whole = times_ns > times_ns[-1] - 10**9 if len(times_ns) else times_ns > 0
            assert np.array_equal(power_w[whole], expected_w[whole])
            looks += 1
        assert writer.returncode == 0
    assert looks >= 20
    assert last > 20_000
    os.close(fd)


@pytest.mark.root
def test_the_update_period_of_a_simulated_chip_is_found_and_its_repeats_are_left_out(tmp_path: Path):
    if (why := unavailable()) is not None:
        pytest.skip(why)
    load = square(0.317, 0.4, 3.0, 8.0)
    with Simulator(TREES / "jetson-tx2", tmp_path / "live", power=load, chip=0x7127) as simulator:
        sampler = Sampler(Power(sysfs=str(simulator.root)))
        try:
            assert sampler.ready(LIMIT_S)
            sampler.open()
            until(lambda: sampler.report().update_period_ms, 60)
            period_ms = sampler.report().update_period_ms
            assert period_ms == pytest.approx(6.6, rel=0.25)
            begin_ns = time.monotonic_ns()
            time.sleep(2.0)
            samples = sampler.samples(begin_ns, time.monotonic_ns())
            assert len(samples.times_ns) < 2 * 2000 / 6.6
            assert samples.period_s == pytest.approx(period_ms / 1e3, rel=0.25)
            assert sampler.report().repeated > 0
        finally:
            sampler.stop()


@pytest.mark.root
def test_a_quiet_sensor_of_unknown_period_gives_short_windows_no_energy_until_it_is_told(tmp_path: Path):
    if (why := unavailable()) is not None:
        pytest.skip(why)
    with Simulator(TREES / "jetson-tx2", tmp_path / "live", power=constant(3.0), chip=0x7C07) as simulator:
        for period_ms, bound_s, values in ((None, 1.0, 0), (430.0, None, None), (0.84, None, None)):
            sampler = Sampler(Power(sysfs=str(simulator.root)), period_ms=period_ms)
            try:
                assert sampler.ready(LIMIT_S)
                until(lambda sampler=sampler: sampler.report().samples)
                sampler.open()
                begin_ns = time.monotonic_ns()
                time.sleep(0.9)
                end_ns = time.monotonic_ns()
                sampler.shut()
                samples = sampler.samples(begin_ns, end_ns)
                assert samples.bound_s == bound_s
                if values is not None:
                    assert inside(samples, begin_ns, end_ns) == values
                elif period_ms == 430.0:
                    assert inside(samples, begin_ns, end_ns) <= 3
                    assert samples.period_s == pytest.approx(0.43)
                else:
                    assert inside(samples, begin_ns, end_ns) > 3
                assert sampler.period_ms == (None if period_ms is None else max(period_ms, 1.0))
            finally:
                sampler.stop()


@pytest.mark.root
def test_a_load_that_is_switched_by_a_clock_is_not_taken_for_a_slow_sensor_once_its_period_is_told(tmp_path: Path):
    if (why := unavailable()) is not None:
        pytest.skip(why)
    load = square(0.1, 0.5, 3.0, 8.0)
    with Simulator(TREES / "jetson-tx2", tmp_path / "live", power=load, chip=0x7007) as simulator:
        sampler = Sampler(Power(sysfs=str(simulator.root)), period_ms=0.84)
        draw = np.random.default_rng(2)
        try:
            assert sampler.ready(LIMIT_S)
            for _ in range(25):  # short windows, as requests have them, until searches have gone by
                time.sleep(draw.uniform(0.25, 0.45))
                sampler.open()
                time.sleep(0.02)
                sampler.shut()
            assert sampler.report().update_period_ms is None
            assert sampler.period_ms == pytest.approx(1.0)
        finally:
            sampler.stop()
