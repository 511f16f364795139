"""What the power sampler achieves and costs at its full rate, as Markdown: `python -m benchmarks.sampler`.

Beside it the least that any process must do for that: sleep until each instant and read one small file.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.conditions import conditions
from jetsel.config import Power
from jetsel.power.sampling.sampler import Sampler

TREES = Path(__file__).parents[1] / "tests/data/sysfs"
SETTLE_S = 3.0  # after the start, when it tries out how often values change
BARE = """
import os, sys, time
file, interval_ns, end_ns = os.open(sys.argv[1], os.O_RDONLY), int(sys.argv[2]), int(sys.argv[3])
due_ns = time.monotonic_ns()
while due_ns < end_ns:
    due_ns += interval_ns
    time.sleep(max(due_ns - time.monotonic_ns(), 0) / 1e9)
    int(os.pread(file, 64, 0))
"""


@dataclass(frozen=True)
class Case:
    """A tree of sensor files, and the rails of it that are added."""

    what: str
    board: str
    total: tuple[str, ...] = ()


CASES = (
    Case("one file a rail, one rail (JetPack 4)", "jetson-tx2"),
    Case("one file a rail, three rails", "jetson-agx-xavier", ("GPU", "CPU", "SOC")),
    Case("two files a rail, one rail (hwmon)", "jetson-orin-nano"),
    Case("two files a rail, three rails", "jetson-agx-orin", ("VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0")),
)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each round of each case")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", type=float, default=1000.0, help="readings in a second")
    args = parser.parse_args()
    print("# The power sampler\n")
    for line in (*conditions(), f"- {args.rounds} rounds of {args.seconds:g} s at {args.rate:g}/s"):
        print(line)
    print("\n| what | round | readings/s | late p50, us | late p99, us | missed | a read, us | of a core |")
    print("|---|---|---|---|---|---|---|---|")
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None  # files without a disk, as sysfs is
    with tempfile.TemporaryDirectory(prefix="jetsel-", dir=memory) as folder:
        for number in range(args.rounds):
            print(
                _row("sleep and read one file", number, (None,) * 5, _bare(Path(folder), args.seconds, args.rate)),
                flush=True,
            )
            for case in CASES:
                print(_measured(case, number, Path(folder) / case.board, args.seconds, args.rate), flush=True)


def _measured(case: Case, number: int, tree: Path, seconds: float, rate_hz: float) -> str:
    if not tree.exists():
        shutil.copytree(TREES / case.board, tree, symlinks=True)
    sampler = Sampler(Power(sysfs=str(tree), total=list(case.total), rate_hz=rate_hz))
    try:
        if not sampler.ready(60) or sampler.reason is not None or (pid := sampler.pid) is None:
            raise SystemExit(f"{case.what}: {sampler.reason}")
        time.sleep(SETTLE_S)
        before = sampler.report()
        sampler.open()
        busy = _busy(pid, lambda: time.sleep(seconds))
        report = sampler.report()
        sampler.shut()
    finally:
        sampler.stop()
    figures = (report.achieved_hz, report.jitter_p50_us, report.jitter_p99_us, report.missed - before.missed)
    return _row(case.what, number, (*figures, report.read_us), busy)


def _bare(folder: Path, seconds: float, rate_hz: float) -> float:
    file = folder / "power"
    file.write_text("5000\n")
    end_ns = time.monotonic_ns() + round((seconds + 1) * 1e9)
    arguments = [str(file), str(round(1e9 / rate_hz)), str(end_ns)]
    with subprocess.Popen([sys.executable, "-c", BARE, *arguments]) as process:
        time.sleep(0.5)  # it starts
        return _busy(process.pid, lambda: time.sleep(seconds))


def _busy(pid: int, while_: Callable[[], None]) -> float:
    """Return what share of a core a process has while something goes on."""
    begin_s, before_ns = time.monotonic(), _cpu_ns(pid)
    while_()
    return (_cpu_ns(pid) - before_ns) / 1e9 / (time.monotonic() - begin_s)


def _cpu_ns(pid: int) -> int:
    """The time that a process has had a core: proc(5), schedstat; where the kernel lacks it, the ticks of stat."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
    except FileNotFoundError:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def _row(what: str, number: int, figures: Sequence[float | None], busy: float) -> str:
    """Return a row; figures that the sampler has not settled yet (it takes seconds) are dashes."""
    cells = ("-" if figure is None else f"{figure:.4g}" for figure in figures)
    return f"| {what} | {number + 1} | {' | '.join(cells)} | {100 * busy:.2f} % |"


if __name__ == "__main__":
    main()
