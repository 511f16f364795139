"""Energies measured in real time: the simulator serves a TX2's sensors, our sampler reads them, or zeus does."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np

from benchmarks.activity import write
from benchmarks.energy_score import Score, scored
from benchmarks.power_model import BUSY_W, IDLE_W, Deducted, Signal
from benchmarks.report import table
from jetsel.config import Power
from jetsel.power.idle import Idle
from jetsel.power.idling import measure
from jetsel.power.meter import SensorMeter
from jetsel.power.place import Place
from jetsel.power.sampling.sampler import Sampler
from tests.simulator import Simulator, constant, recorded, square
from tests.simulator.power import Power as Source

TREE = Path(__file__).parents[1] / "tests/data/sysfs/jetson-tx2"
RAIL = "VDD_IN"
FASTEST = 0x7007  # the chip's configuration: three channels, 140 us for each conversion, no averaging
FASTEST_MS = 0.84  # of six conversions; `jetsel power calibrate` finds it out, and a daemon tells the sampler
PERIODS_S = (0.02, 0.05, 0.1, 0.3)
IDLE_S = 30.0
READY_S = 60.0
ZEUS_WINDOWS_S = (0.005, 0.02, 0.05, 0.3)
ZEUS_READER = Path(__file__).with_name("zeus_reader.py")


class Window(msgspec.Struct, frozen=True):
    """What the other side measured between two instants of CLOCK_MONOTONIC."""

    begin_ns: int
    end_ns: int
    energy_mj: float


def live(
    trace: Signal, rates_hz: Sequence[float], lengths_s: Sequence[float], count: int
) -> dict[tuple[str, float, float], Score]:
    """Return the scores by signal, rate and length: `count` windows of each up to 50 ms, fewer of longer ones."""
    scores: dict[tuple[str, float, float], Score] = {}
    with tempfile.TemporaryDirectory() as folder:
        write(trace, Path(folder, "trace.csv"), RAIL)
        signals = {f"constant {BUSY_W:g} W": constant(BUSY_W)}
        signals |= {f"square {period_s * 1e3:g} ms": square(period_s, 0.5, IDLE_W, BUSY_W) for period_s in PERIODS_S}
        signals["recorded"] = recorded(Path(folder, "trace.csv"))
        for rate_hz in rates_hz:
            idle = _idle(Path(folder, "sys"), rate_hz)
            for name, source in signals.items():
                with _board(Path(folder, "sys"), source) as board, _sampler(board.root, rate_hz) as sampler:
                    _windows(
                        board,
                        sampler,
                        idle,
                        {s: scores.setdefault((name, rate_hz, s), scored(s)) for s in lengths_s},
                        count,
                    )
    return scores


def _windows(board: Simulator, sampler: Sampler, idle: Idle, scores: dict[float, Score], count: int) -> None:
    meter = SensorMeter(sampler, idle)
    draw = np.random.default_rng(1)
    for length_s, score in scores.items():
        for _ in range(count if length_s <= 0.05 else max(2, round(count * 0.05 / length_s))):
            time.sleep(draw.uniform(0, 0.05))
            window = meter.window()
            _until(window.begin_ns + round(length_s * 1e9))
            reading = window.close()
            assert window.end_ns is not None
            seconds = (window.end_ns - window.begin_ns) * 1e-9
            score.add(reading, 1e3 * (board.truth_j(RAIL, window.begin_ns, window.end_ns) - IDLE_W * seconds))


def _until(end_ns: int) -> None:
    """Sleep, and for the last stretch spin: a sleep may be a millisecond late."""
    left_s = (end_ns - time.monotonic_ns()) * 1e-9
    if left_s > 0.002:
        time.sleep(left_s - 0.002)
    while time.monotonic_ns() < end_ns:
        pass


def beside_zeus(python: Path, count: int) -> Iterator[str]:
    """Yield the table: the median of measured / true energy, for each side, signal and length of the window.

    Both report the whole energy: zeus deducts no idle power, so none is deducted here. They take turns, window by
    window, on one simulated board in one run.
    """
    rows = []
    nothing = Deducted(0.0, 0.0)
    with tempfile.TemporaryDirectory() as folder:
        for name, source in (
            (f"constant {BUSY_W:g} W", constant(BUSY_W)),
            ("square 100 ms", square(0.1, 0.5, IDLE_W, BUSY_W)),
        ):
            with (
                _board(Path(folder, "sys"), source) as board,
                _sampler(board.root, 1000.0) as sampler,
                _zeus(python, board.root) as other,
            ):
                meter = SensorMeter(sampler, nothing)
                rows += [
                    [name, f"{length_s * 1e3:g} ms", *_turns(board, meter, other, length_s, count)]
                    for length_s in ZEUS_WINDOWS_S
                ]
    yield from table(("signal", "window", "jetsel", "zeus", "jetsel, least to most", "zeus, least to most"), rows)


def _turns(
    board: Simulator, meter: SensorMeter, other: subprocess.Popen[bytes], length_s: float, count: int
) -> list[str]:
    ours, theirs = [], []
    draw = np.random.default_rng(2)
    for _ in range(count):
        time.sleep(draw.uniform(0.1, 0.2))
        window = meter.window()
        _until(window.begin_ns + round(length_s * 1e9))
        reading = window.close()
        assert window.end_ns is not None
        if reading.energy_mj is not None:
            ours.append(reading.energy_mj / (1e3 * board.truth_j(RAIL, window.begin_ns, window.end_ns)))
        time.sleep(draw.uniform(0.1, 0.2))
        seen = _ask(other, length_s)
        theirs.append(seen.energy_mj / (1e3 * board.truth_j(RAIL, seen.begin_ns, seen.end_ns)))
    return [
        *(f"{np.median(ratios):.3f}" if ratios else "-" for ratios in (ours, theirs)),
        *(f"{min(ratios):.3f} to {max(ratios):.3f}" if ratios else "-" for ratios in (ours, theirs)),
    ]


def _ask(other: subprocess.Popen[bytes], length_s: float) -> Window:
    assert other.stdin is not None
    assert other.stdout is not None
    other.stdin.write(b"%f\n" % length_s)
    other.stdin.flush()
    answer = other.stdout.readline()
    if not answer:
        raise SystemExit(f"zeus ended with {other.wait()}; its error is above")
    return msgspec.json.decode(answer, type=Window)


@contextmanager
def _zeus(python: Path, root: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run zeus in a mount namespace of its own, in which the simulated tree stands at /sys, where zeus looks."""
    script = 'mount --bind "$1" /sys && exec "$2" "$3"'
    command = ["unshare", "--mount", "sh", "-c", script, "sh", str(root), str(python), str(ZEUS_READER)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        yield other
        assert other.stdin is not None
        other.stdin.close()


@contextmanager
def _board(root: Path, source: Source) -> Iterator[Simulator]:
    with Simulator(TREE, root, power=source, chip=FASTEST) as board:
        yield board


@contextmanager
def _sampler(root: Path, rate_hz: float) -> Iterator[Sampler]:
    """Yield a sampler that has found the rails and sampled fast for a while, as one of a daemon has."""
    sampler = Sampler(Power(sysfs=str(root), rate_hz=rate_hz), period_ms=FASTEST_MS)
    try:
        if not sampler.ready(READY_S) or sampler.reason is not None:
            raise SystemExit(f"no samples: {sampler.reason}")
        sampler.open()
        time.sleep(2.0)
        sampler.shut()
        time.sleep(0.5)
        yield sampler
    finally:
        sampler.stop()


def _idle(root: Path, rate_hz: float) -> Idle:
    """Measure the idle power of the simulated board as `jetsel power calibrate` does."""
    with _board(root, constant(IDLE_W)) as board, _sampler(board.root, rate_hz) as sampler:
        return measure(sampler, IDLE_S, Place("jetson-tx2", None, None), lambda: None)
