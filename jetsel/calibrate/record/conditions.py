"""Conditions of a recording, such as board, clocks and load, and timing under them: by turns, with its noise."""

from __future__ import annotations

import datetime
import importlib.metadata
import math
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import Struct

from jetsel import __version__
from jetsel.power.idle import read_processor_times
from jetsel.power.machine import ClockReading, Fact, Known, Machine, clocks, throttling
from jetsel.power.sysfs import root_of

LIBRARIES = ("numpy", "opencv-python-headless", "onnxruntime")


class Conditions(Struct, frozen=True, kw_only=True):
    """The machine's state at the start of a run. Each Fact is a value, or None and why it is unknown."""

    board: Fact
    power_mode: Fact
    cpu_clock: Fact
    gpu_clock: Fact
    versions: Mapping[str, Fact]  # of libraries
    load: tuple[float, float, float]  # averages over 1, 5 and 15 min
    started: str  # in ISO 8601

    @property
    def machine(self) -> tuple[object, ...]:
        """Board, power mode and versions: times are comparable only if these are equal."""
        return self.board, self.power_mode, self.versions

    def described(self) -> dict[str, str]:
        """Return name -> condition in words, for reports."""
        return {
            "board": str(self.board),
            "power mode": str(self.power_mode),
            "CPU clock": str(self.cpu_clock),
            "GPU clock": str(self.gpu_clock),
            **{name: str(fact) for name, fact in self.versions.items()},
            "load average": ", ".join(f"{load:.2f}" for load in self.load),
            "started": self.started,
        }


def gather(sysfs: Path | str = "/sys") -> Conditions:
    """Read the machine's conditions now. sysfs: root of the kernel's files about power and clocks."""
    facts = Machine(sysfs).facts()
    versions = {"python": Fact(platform.python_version()), "jetsel": Fact(__version__)}
    return Conditions(
        board=facts.board,
        power_mode=facts.power_mode,
        cpu_clock=_describe_cpu_clock(facts.cpu_clocks),
        gpu_clock=_describe_gpu_clock(facts.gpu_clocks),
        versions=versions | {name: _library_version(name) for name in LIBRARIES},
        load=os.getloadavg(),
        started=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    )


def _describe_cpu_clock(clocks: Known[list[ClockReading]]) -> Fact:
    if clocks.value is None:
        return Fact(None, clocks.reason)
    governor = clocks.value[0].governor
    highest_mhz = max(clock.highest_mhz for clock in clocks.value)
    return Fact(f"up to {highest_mhz:.0f} MHz" + (f", {governor}" if governor else ""))


def _describe_gpu_clock(clocks: Known[list[ClockReading]]) -> Fact:
    if clocks.value is None:
        return Fact(None, clocks.reason)
    clock = clocks.value[0]
    return Fact(f"{clock.now_mhz:.0f} of {clock.highest_mhz:.0f} MHz")


def _library_version(name: str) -> Fact:
    try:
        return Fact(importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Fact(None, "not installed as a package")


OTHERS_SHARE = 0.05  # of all cores, by other processes; an idle desktop or board takes 1 to 3 %
STOLEN_SHARE = 0.02  # of all cores, by the hypervisor
CLOCK_SHARE = 0.9  # of the highest clock that the power mode allows


class NoiseMonitor:
    """Watches, from its creation on, whether other load, low clocks or heat make times unreliable."""

    def __init__(
        self,
        sysfs: Path | str = "/sys",
        now: Callable[[], float] = time.monotonic,
        own_s: Callable[[], float] = time.process_time,
    ) -> None:
        """sysfs: usually /sys; its parent folder holds proc. own_s: returns this process's processor seconds so far."""
        self._root = Path(sysfs).parent
        self._sysfs = root_of(str(sysfs))
        self._now = now
        self._own_s = own_s
        self._at_start = (now(), own_s(), read_processor_times(self._root))
        self._lowest: dict[str, float] = {}  # CPU and GPU -> lowest share of the highest clock
        self._hot: str | None = None

    def look(self, gpu: bool = False) -> None:
        """Note clocks and overheating. Call it while a timed run keeps a core busy. gpu: whether that uses the GPU."""
        gpus = clocks.gpu(self._sysfs).value if gpu else None
        for name, readings in (("CPU", clocks.cpu(self._sysfs).value), ("GPU", gpus)):
            if readings:  # idle cores slow down, so the fastest core is the busy one
                share = max(clock.share for clock in readings)
                self._lowest[name] = min(share, self._lowest.get(name, share))
        self._hot = self._hot or next(iter(throttling.hot_zones(self._sysfs)), None)

    def reason(self) -> str | None:
        """Return in words why times measured since the start are unreliable, None if nothing disturbed them."""
        reasons = self._load_reasons()
        reasons += [
            f"the {name} ran at {100 * share:.0f} % of its highest clock"
            for name, share in self._lowest.items()
            if share < CLOCK_SHARE
        ]
        reasons += [self._hot] if self._hot else []
        return "; ".join(reasons) or None

    def _load_reasons(self) -> list[str]:
        """Return in words which part of the processor others took since the start, if it was too much."""
        began, own_began, at_start = self._at_start
        now, elapsed = read_processor_times(self._root), self._now() - began
        if now is None or at_start is None or elapsed <= 0:
            return []
        others = (now.busy_s - at_start.busy_s - (self._own_s() - own_began)) / elapsed
        stolen, cores = (now.stolen_s - at_start.stolen_s) / elapsed, now.cores
        reasons = []
        if others > OTHERS_SHARE * cores:
            reasons.append(f"other processes took {others:.2f} of {cores} cores")
        if stolen > STOLEN_SHARE * cores:
            reasons.append(f"the hypervisor took {stolen:.2f} of {cores} cores")
        return reasons


MAD_TO_DEVIATION = 1.4826  # of a normal distribution: 1 / its 75 % quantile
MEDIAN_TO_MEAN = math.sqrt(math.pi / 2)  # error of a median / error of a mean, for a normal distribution
NOISY_SHARE = 0.05  # limit of half the 95 % interval, as a share of the time (Taylor et al., section 4.2)


@dataclass(frozen=True)
class TimingPlan:
    """How models are timed. Timing may take as long as the recording took."""

    images: int = 200  # at most, chosen at random
    repeats: int = 3  # runs of each model on one image; their median counts
    least: int = 10  # images that are timed even if that time is over


def run_by_turns(
    runs: Mapping[str, Callable[[], object]],
    rounds: int,
    budget_s: float = math.inf,
    least: int | None = None,
    now: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Return name -> durations in ms. Each round calls every function once, so that all meet the same conditions.

    It ends after `rounds`, or after `least` rounds as soon as the budget is spent or all medians are known well enough.
    least: None to run all rounds.
    """
    times_ms: dict[str, list[float]] = {name: [] for name in runs}
    began_s = now()
    for done in range(rounds):
        if least is not None and done >= least and (now() - began_s >= budget_s or describe_noise(times_ms) is None):
            break
        for name, run in runs.items():
            start_s = now()
            run()
            times_ms[name].append((now() - start_s) * 1e3)
    return times_ms


def half_interval_of_median(values: Sequence[float]) -> float:
    """Return half the 95 % confidence interval of the median, estimated by the median absolute deviation.

    It is infinite for fewer than two values.
    """
    if len(values) < 2:
        return math.inf
    middle = statistics.median(values)
    deviation = MAD_TO_DEVIATION * statistics.median(abs(value - middle) for value in values)
    return 1.96 * MEDIAN_TO_MEAN * deviation / math.sqrt(len(values))


def describe_noise(times_ms: Mapping[str, Sequence[float]]) -> str | None:
    """Return in words the error of the least certain median; None if all are known to within NOISY_SHARE."""
    shares = {name: half_interval_of_median(values) / statistics.median(values) for name, values in times_ms.items()}
    worst = max(shares, key=shares.__getitem__, default=None)
    if worst is None or shares[worst] < NOISY_SHARE:
        return None
    share = "only once" if math.isinf(shares[worst]) else f"to ±{100 * shares[worst]:.0f} %"
    return f"the time of {worst} is known {share}"
