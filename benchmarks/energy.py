"""How far energies of windows are from the truth, at 20 and at 1,000 samples a second. `python -m benchmarks.energy`.

The board is simulated: a load whose energy is known, seen through a model of an INA3221 (TI SBOS576) on a TX2's input:
19 V over 5 mOhm, so that a step of 40 uV is 0.152 W. A window is integrated by the product's own code, less the idle
power of 3 W. Phases of load and sensor are drawn anew for each window. Beside it stands what sampling costs here.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Callable, Iterator
from random import Random
from statistics import median

from jetsel.base.config import Power
from jetsel.power.integration import STALE_S, Sample, energy_above_idle
from jetsel.power.sampler import SLOWEST_S, Sampler
from tests.data.sysfs_trees import tree

IDLE_W, BUSY_W = 3.0, 8.0
STEP_W = 19.0 * 40e-6 / 5e-3
RATES_HZ = 20.0, 1000.0
WINDOWS_S = 2.0, 5.0, 20.0
RIPPLE_W = 0.1  # from one value of the sensor to the next, as real boards have it: its standard deviation

Energy = Callable[[float], float]
"""Joules from the beginning until a time in seconds."""


def constant(_: Random) -> Energy:
    """A load of 8 W."""
    return lambda at_s: BUSY_W * at_s


def switched(period_s: float) -> Callable[[Random], Energy]:
    """A load that is half of its period at 8 W and half at 3 W."""

    def made(draw: Random) -> Energy:
        phase_s = draw.random() * period_s

        def energy_j(at_s: float) -> float:
            periods, into_s = divmod(at_s + phase_s, period_s)
            busy_s = periods * period_s / 2 + min(into_s, period_s / 2)
            return IDLE_W * (at_s + phase_s) + (BUSY_W - IDLE_W) * busy_s

        return energy_j

    return made


KINDS = {
    "constant": [(constant, 0.0)],
    "constant, rippling": [(constant, RIPPLE_W)],
    "switched": [(switched(ms / 1e3), RIPPLE_W) for ms in (10, 20, 50, 100, 330, 1000)],
}
"""Loads, each with its ripple. The power that is switched has a period of 10, 20, 50, 100, 330 or 1,000 ms."""


class Chip:
    """The register of one channel: a new value in each cycle of six conversions, or of so many averages of them."""

    def __init__(self, conversion_s: float, averages: int, energy_j: Energy, ripple_w: float, draw: Random) -> None:
        self._cycle_s = 6 * conversion_s * averages
        self._mean_s = self._cycle_s if averages > 1 else conversion_s  # what a value is the mean of
        self._energy_j = energy_j
        self._began_s = -draw.random() * self._cycle_s
        self._ripple_w = ripple_w
        self._draw = draw
        self._cycle = -1
        self._watts = 0.0

    def watts(self, at_s: float) -> float:
        """Return what a read finds, in whole steps."""
        cycle = math.floor((at_s - self._began_s) / self._cycle_s)
        if cycle != self._cycle:
            end_s = self._began_s + cycle * self._cycle_s
            mean_w = (self._energy_j(end_s) - self._energy_j(end_s - self._mean_s)) / self._mean_s
            self._cycle = cycle
            self._watts = round((mean_w + self._draw.gauss(0.0, self._ripple_w)) / STEP_W) * STEP_W
        return self._watts


CHIPS = {"7 ms": (1.1e-3, 1), "53 ms": (140e-6, 64), "430 ms": (140e-6, 512)}
"""By their cycle: Linux's default; one that averages; as NVIDIA sets the TX2's up."""


def seen(chip: Chip, length_s: float, rate_hz: float, draw: Random) -> list[Sample]:
    """Return the samples of a window: one at each edge, and between them the thread's."""
    between = ((index + draw.random()) / rate_hz for index in range(int(length_s * rate_hz)))  # as the sampler has it
    samples: list[Sample] = []
    last_w, new_s = math.nan, -math.inf
    for at_s in (0.0, *(at_s for at_s in between if 0 < at_s < length_s), length_s):
        watts = chip.watts(at_s)
        is_new = watts != last_w or at_s - new_s >= SLOWEST_S  # as the sampler has it
        last_w, new_s = (watts, at_s) if is_new else (last_w, new_s)
        samples.append(Sample(round(at_s * 1e9), watts, 0.0, is_new))
    return samples


def errors(kind: str, chip: str, length_s: float, rate_hz: float, windows: int) -> list[float | None]:
    """Return the error of each window as a share of its true energy above idle, None where it has no energy."""
    draw = Random(f"{kind} {chip} {length_s}")
    found: list[float | None] = []
    for load, ripple_w in KINDS[kind] * (windows // len(KINDS[kind]) + 1):
        energy_j = load(draw)
        samples = seen(Chip(*CHIPS[chip], energy_j, ripple_w, draw), length_s, rate_hz, draw)
        true_mj = 1e3 * (energy_j(length_s) - energy_j(0.0) - IDLE_W * length_s)
        reading = energy_above_idle(samples, IDLE_W, STALE_S)
        found.append(None if reading.energy_mj is None else reading.energy_mj / true_mj - 1)
    return found


def table(windows: int) -> Iterator[str]:
    """Give a row for each kind of load, cycle of the sensor and window: both rates side by side."""
    yield "| load | a new value every | window | 20/s: no energy | median error | 95 % below | 1000/s: no energy | median error | 95 % below |"  # noqa: E501
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    for kind, chip, length_s in itertools.product(KINDS, CHIPS, WINDOWS_S):
        cells = [cell for rate_hz in RATES_HZ for cell in figures(errors(kind, chip, length_s, rate_hz, windows))]
        yield f"| {kind} | {chip} | {length_s:g} s | {' | '.join(cells)} |"


def figures(found: list[float | None]) -> tuple[str, str, str]:
    """Return how many have no energy, the median size of the error, and what 95 % of the errors stay below."""
    known = sorted(abs(error) for error in found if error is not None)
    without = f"{1 - len(known) / len(found):.0%}"
    if not known:
        return without, "-", "-"
    return without, f"{100 * median(known):.1f} %", f"{100 * known[int(0.95 * (len(known) - 1))]:.1f} %"


def cost(rate_hz: float, seconds: float) -> float:
    """Return what a sampler takes of one core at this rate, over a copy of a board's files."""
    sampler = Sampler(Power(sysfs=str(tree("jetson-tx2")), rate_hz=rate_hz))
    try:
        sampler.ready(60.0)
        began_s, cpu_s = time.monotonic(), time.process_time()
        time.sleep(seconds)
        return (time.process_time() - cpu_s) / (time.monotonic() - began_s)
    finally:
        sampler.stop()


def main() -> None:
    """Print the table, and what sampling costs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.energy", description=__doc__)
    parser.add_argument("--windows", type=int, default=60, help="of each row, at least")
    arguments = parser.parse_args()
    for line in table(arguments.windows):
        print(line, flush=True)
    print()
    for rate_hz in (20.0, 100.0):
        print(f"{rate_hz:g} samples a second take {100 * cost(rate_hz, 5.0):.2f} % of a core")


if __name__ == "__main__":
    main()
