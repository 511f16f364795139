"""The stand-in for a slow board: `python -m calibration.slow_board IMAGES --models DIR`.

IMAGES: a folder with one folder of images for each class. `jetsel calibrate` and the retiming of the first start run on
a part of one core of this processor, 15 % of it by default: a TX2 is five to ten times slower than a server's core. The
kernel keeps the limit in periods of 10 ms, so that even single runs of a model take the time of a slow processor. The
page of the results compares the whole time with the pure time of the model runs, and fitting with recording.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

from benchmarks.conditions import conditions
from calibration.owners.halves import listed, write_list
from jetsel import __version__
from jetsel.cli.terminal import PHASES
from jetsel.daemon.first_start import LIMIT_S

OUT = Path(__file__).with_name("RESULTS-slow-board.md")
SEED = 2018
PERIOD_US = 10_000
MOST_TIMES, LEAST_FIT_S = 3.0, 20.0  # goals: of the model runs' pure time; of processor time for fit and compare
SYSTEMD, CGROUP_2, CGROUP_1 = Path("/run/systemd/system"), Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/cpu")
BURN = """
import time
began = time.monotonic()
while time.monotonic() - began < 3: pass
print(100 * time.process_time() / (time.monotonic() - began))
"""


@contextmanager
def limited(percent: float) -> Iterator[tuple[str, list[str]]]:
    """Give the name of what limits, and the words before a command that hold it to this part of one core.

    systemd makes the cgroup where it runs; elsewhere it is made here, which needs root. Raises SystemExit.
    """
    quota_us = round(PERIOD_US * percent / 100)
    if SYSTEMD.is_dir():
        scope = ["systemd-run", "--scope", "--quiet", *([] if os.geteuid() == 0 else ["--user"])]
        limits = ["-p", f"CPUQuota={percent:g}%", "-p", f"CPUQuotaPeriodSec={PERIOD_US}us"]
        yield "CPUQuota of a systemd scope", [*scope, *limits, "--"]
        return
    version_1 = {"cpu.cfs_period_us": f"{PERIOD_US}", "cpu.cfs_quota_us": f"{quota_us}"}
    root, files = (CGROUP_1, version_1) if CGROUP_1.is_dir() else (CGROUP_2, {"cpu.max": f"{quota_us} {PERIOD_US}"})
    group = root / f"jetsel-slow-board-{os.getpid()}"
    try:
        group.mkdir()
        for name, value in files.items():
            (group / name).write_text(value, encoding="ascii")
    except OSError as error:
        raise SystemExit(f"{group}: {error.strerror}: run this as root, or where systemd runs") from None
    try:
        join = f'echo $$ > "{group / "cgroup.procs"}" && exec "$@"'
        yield f"{', '.join(files)} of a cgroup", ["sh", "-c", join, "sh"]
    finally:
        with suppress(OSError):  # a process of an interrupted run is still in it
            group.rmdir()


class Moment(NamedTuple):
    """Seconds since the start of a command, and its processor time until then."""

    s: float
    cpu_s: float


def run(words: Sequence[str], ends: Sequence[str]) -> list[Moment]:
    """Run a command, show what it prints, and return when it printed a line with each of `ends`, and when it ended."""
    found: list[Moment] = []
    before, began_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/") as process:
        for line in process.stdout or ():
            print(f"{time.monotonic() - began_s:6.0f} s  {line}", end="", flush=True)
            if len(found) < len(ends) and ends[len(found)] in line:
                ticks = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[11:15]
                found.append(Moment(time.monotonic() - began_s, sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")))
    if process.returncode or len(found) < len(ends):
        raise SystemExit(f"{' '.join(words)}: failed with exit status {process.returncode}, or printed other lines")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return [*found, Moment(time.monotonic() - began_s, cpu_s)]


def runs_s(recording: Path) -> tuple[int, int, float]:
    """Return the images, the models that were timed, and how long their runs take: each model's mean times its images.

    A model that was recorded no further is not timed, and its runs count as nothing.
    """
    with closing(sqlite3.connect(recording)) as connection:
        (images,) = connection.execute("SELECT COUNT(*) FROM photographs").fetchone()
        each = connection.execute(
            "SELECT AVG(median_ms) * (SELECT COUNT(*) FROM predictions WHERE predictions.model = timings.model)"
            " FROM timings GROUP BY model"
        ).fetchall()
    return images, len(each), sum(taken_ms for (taken_ms,) in each) / 1e3


def measure(images: Path, models: Path, prefix: list[str], work: Path) -> list[str]:
    """Run both commands under the limit, with calibrations of their own; return the table's lines."""
    config, recording = work / "jetsel.toml", work / "recording.sqlite"
    names = [path.stem.partition(".")[2] for path in sorted(models.glob("*-int8.json"))]
    config.write_text(
        f'[server]\nendpoint = "ipc://{work}/none.sock"\n[models]\nstarter = false\npaths = ["{models}"]\n'
        f'only = {names}\ncalibrations = "{work / "calibrations"}"\n',
        encoding="utf-8",
    )
    jetsel = [sys.executable, "-m", "jetsel", "calibrate", "--config", str(config)]
    (retimed,) = run([*prefix, "nice", *jetsel, "--retime"], [])
    ends = [PHASES["reading"], PHASES["timing"], f"images in {recording}"]
    began, timing, recorded, done = run([*prefix, *jetsel, str(images), "--recording", str(recording)], ends)
    count, timed, pure_s = runs_s(recording)
    recording_s, fit_s = timing.cpu_s - began.cpu_s, done.cpu_s - recorded.cpu_s
    return [
        f"{count} images, {len(names)} models, of which {timed} were recorded to the end.\n",
        "| what | measured | goal |\n| --- | --- | --- |",
        f"| pure time of the model runs | {pure_s:.0f} s | |",
        f"| the whole of `jetsel calibrate` | {done.s:.0f} s | |",
        f"| the whole, in pure times of the model runs | {done.s / pure_s:.2f} | at most {MOST_TIMES:g} |",
        f"| until the recording begins: Python and the models are loaded | {began.s:.0f} s | |",
        f"| recording | {timing.s - began.s:.0f} s | |",
        f"| timing | {recorded.s - timing.s:.0f} s | |",
        f"| fit and compare | {done.s - recorded.s:.0f} s | |",
        f"| processor time of recording | {recording_s:.1f} s | |",
        f"| processor time of fit and compare | {fit_s:.1f} s | at most {max(LEAST_FIT_S, recording_s / 3):.1f} s |",
        f"| retiming at the first start | {retimed.s:.0f} s | at most {LIMIT_S:.0f} s |",
    ]


def main(words: Sequence[str] | None = None) -> None:
    """Measure, print the page, and write it."""
    parser = argparse.ArgumentParser(
        prog="python -m calibration.slow_board", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("images", type=Path, metavar="IMAGES", help="folder with one folder of images for each class")
    parser.add_argument(
        "--models",
        type=Path,
        required=True,
        metavar="DIR",
        help="made by jetsel models pull efficientnet-lite --both",
    )
    parser.add_argument("--most", type=int, default=500, help="images that are drawn from the folder (%(default)s)")
    parser.add_argument("--cpu-percent", type=float, default=15.0, help="part of one core (%(default)s)")
    parser.add_argument("--out", type=Path, default=OUT, help="page to write (default: RESULTS-slow-board.md)")
    options = parser.parse_args(words)
    lines, images = conditions(), listed(options.images)
    drawn = random.Random(SEED).sample(images, min(options.most, len(images)))
    describe = ["git", "-C", str(OUT.parent), "describe", "--always", "--dirty", "--exclude", "*"]
    commit = subprocess.run(describe, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    with limited(options.cpu_percent) as (by, prefix), tempfile.TemporaryDirectory(prefix="jetsel-") as folder:
        burnt = subprocess.run([*prefix, sys.executable, "-c", BURN], capture_output=True, text=True, check=True)
        held = f"held to {options.cpu_percent:g} % of one core by {by}; a loop got {float(burnt.stdout):.1f} %"
        table = measure(write_list(drawn, Path(folder, "images.csv")), options.models.resolve(), prefix, Path(folder))
    about = [f"- jetsel {__version__}, commit {commit}, {datetime.now(timezone.utc).date()}; seed {SEED}", f"- {held}"]
    title = f"`jetsel calibrate` on {options.cpu_percent:g} % of a core"
    page = "\n".join(
        [f"# {title}", "", "`python -m calibration.slow_board` writes this page.", "", *lines, *about, "", *table]
    )
    print(page)
    options.out.write_text(f"{page}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
