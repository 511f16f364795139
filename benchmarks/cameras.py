"""Many cameras at once: are all events in time, and what does it take? `python -m benchmarks.cameras`.

Eight RTSP cameras (GStreamer's server, for the system's Python) change what they show at known times. One floods with
six times the frames; half-way one hangs for a while, and the daemon is restarted. `--each` watches every camera by a
process of its own, `--beside PYTHON` by those of another version of jetsel.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.conditions import conditions
from benchmarks.memory import memory_mb
from benchmarks.report import table
from benchmarks.servers import daemon
from tests.waiting import until

SERVER = Path(__file__).with_name("rtsp_cameras.py")
SYSTEM_PYTHON = "/usr/bin/python3"
RATE_HZ, FLOOD_HZ = 10, 60
PATTERNS = (0, 11)  # of videotestsrc: bars and a chessboard, which get different labels
GAP_S = 4.0  # between two changes of one camera, at least
HANGING_S = 8.0
IN_TIME_S = 1.5
LATE_S = 10.0  # an event that comes later than this is lost


@dataclass
class CameraServer:
    """Cameras of one process. first: the number of its first."""

    process: subprocess.Popen[str]
    port: int
    first: int

    def show(self, camera: int, pattern: int) -> None:
        """Change what one shows."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{camera - self.first} {pattern}\n")
        self.process.stdin.flush()


@dataclass
class Truth:
    """When a camera changed, in seconds of time.time(), and whether an outage was under way."""

    camera: int
    at_s: float
    is_disturbed: bool


@dataclass
class Run:
    """What one way of watching gave."""

    truths: list[Truth] = field(default_factory=list)
    cpu_s: float = 0.0
    memory_mb: float = 0.0


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cameras", description=__doc__)
    parser.add_argument("--cameras", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each way of watching")
    parser.add_argument("--each", action="store_true", help="also watch each camera by a process of its own")
    parser.add_argument("--beside", help="the interpreter of another version, for a process for each camera")
    args = parser.parse_args()
    print(f"# {args.cameras} cameras at {RATE_HZ} frames/s, one of them at {FLOOD_HZ}\n")
    print("\n".join(conditions()), flush=True)
    ways = {"one process": ""} | ({"a process each": sys.executable} if args.each else {})
    ways |= {"a process each, the other version": args.beside} if args.beside else {}
    rows = []
    for name, python in ways.items():
        with tempfile.TemporaryDirectory(prefix="jetsel-") as folder:
            rows.append(_row(name, *_measured(Path(folder), args.cameras, args.seconds, python)))
    headings = (
        "",
        "events",
        "in 1.5 s",
        "delay, median, s",
        "largest, s",
        "in an outage: lost",
        "CPU s a minute",
        "MB",
    )
    print("\n" + "\n".join(table(headings, rows)))


def _measured(folder: Path, count: int, seconds: float, python: str) -> tuple[Run, list[dict[str, Any]]]:
    """Watch once; return the truth, and all label events. python: of a process for each camera; "": one for all."""
    run = Run()
    with ExitStack() as running:
        served = running.enter_context(ExitStack())
        served.enter_context(daemon(folder / "daemon"))
        endpoint = f"ipc://{folder / 'daemon' / 'jetsel.sock'}"
        groups = ((0, count - 2, RATE_HZ), (count - 2, 1, RATE_HZ), (count - 1, 1, FLOOD_HZ))
        servers = [running.enter_context(_cameras(*group)) for group in groups]
        of_camera = {one.first + i: one for one, (_, n, _) in zip(servers, groups, strict=True) for i in range(n)}
        urls = {camera: f"rtsp://127.0.0.1:{one.port}/{camera - one.first}" for camera, one in of_camera.items()}
        outs = running.enter_context(_watching(folder, urls, endpoint, python))
        pids = [process.pid for process, _ in outs]
        until(lambda: len({event["source"] for event in _events(outs)}) == count)
        began_s, cpu_before_s = time.time(), _cpu_s(pids)
        drawn, next_s = random.Random(count), {camera: began_s + 1 + camera / count for camera in urls}
        shows, hanging, restarts = dict.fromkeys(urls, 0), servers[1], 0
        half_s, hung_s = began_s + seconds / 2, 0.0
        while (now_s := time.time()) < began_s + seconds:
            if hung_s == 0.0 and now_s > half_s:
                hanging.process.send_signal(signal.SIGSTOP)
                hung_s = now_s
            if hung_s > 0 and now_s > hung_s + HANGING_S:
                hanging.process.send_signal(signal.SIGCONT)
                hung_s = -now_s
                next_s[hanging.first] = now_s
            if restarts == 0 and now_s > half_s + seconds / 4:
                served.close()
                served.enter_context(daemon(folder / "daemon"))
                restarts, ended_s = 1, time.time()
                for truth in run.truths:
                    truth.is_disturbed |= truth.at_s > now_s - IN_TIME_S
                next_s = {camera: max(due_s, ended_s + drawn.uniform(1, 2) * GAP_S) for camera, due_s in next_s.items()}
            for camera, due_s in next_s.items():
                is_hanging = of_camera[camera] is hanging and (hung_s > 0 or half_s - IN_TIME_S < now_s < half_s)
                if now_s >= due_s and not is_hanging and now_s < began_s + seconds - 2:
                    shows[camera] ^= 1
                    of_camera[camera].show(camera, PATTERNS[shows[camera]])
                    just_back = of_camera[camera] is hanging and -hung_s == now_s
                    run.truths.append(Truth(camera, time.time(), just_back))
                    next_s[camera] = now_s + (LATE_S if just_back else GAP_S) + drawn.uniform(0, GAP_S)
            time.sleep(0.01)
        run.cpu_s = _cpu_s(pids) - cpu_before_s
        run.memory_mb = sum(memory_mb(pid)["Pss"] for pid in pids)
        time.sleep(2 * IN_TIME_S)
        return run, _events(outs)


def _row(name: str, run: Run, events: list[dict[str, Any]]) -> list[str]:
    """Judge one way: an event belongs to the last change of its camera before it."""
    came: dict[str, list[float]] = {}
    for event in events:
        came.setdefault(event["source"], []).append(
            datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp()
        )
    delays_s: dict[bool, list[float | None]] = {True: [], False: []}
    for truth in run.truths:
        later = [at_s - truth.at_s for at_s in came.get(f"camera {truth.camera}", []) if at_s >= truth.at_s]
        following = [one.at_s for one in run.truths if one.camera == truth.camera and one.at_s > truth.at_s]
        until_s = min([LATE_S, *(at_s - truth.at_s for at_s in following)])
        delays_s[truth.is_disturbed].append(next((one for one in later if one < until_s), None))
    calm = [one for one in delays_s[False] if one is not None]
    in_time = sum(one <= IN_TIME_S for one in calm)
    lost = f"{sum(one is None for one in delays_s[True])} of {len(delays_s[True])}"
    figures = [f"{len(delays_s[False])}", f"{in_time}", f"{statistics.median(calm):.2f}", f"{max(calm):.2f}", lost]
    span_s = max(one.at_s for one in run.truths) - min(one.at_s for one in run.truths)
    return [name, *figures, f"{60 * run.cpu_s / span_s:.1f}", f"{run.memory_mb:.0f}"]


@contextmanager
def _cameras(first: int, count: int, rate_hz: int) -> Iterator[CameraServer]:
    command = [SYSTEM_PYTHON, str(SERVER), str(count), str(rate_hz)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield CameraServer(process, int(process.stdout.readline()), first)
    finally:
        process.kill()
        process.wait()


Outs = Sequence[tuple["subprocess.Popen[bytes]", Path]]


@contextmanager
def _watching(folder: Path, urls: dict[int, str], endpoint: str, python: str) -> Iterator[Outs]:
    """Watch all cameras, until the block ends."""
    words = folder / "watch.err"
    if python:
        commands = [["-m", "jetsel", "watch", url, "--name", f"camera {number}"] for number, url in urls.items()]
    else:
        tables = [f'[[cameras]]\nname = "camera {number}"\nsource = "{url}"\n' for number, url in urls.items()]
        (folder / "jetsel.toml").write_text("".join(tables))
        commands = [["-m", "jetsel", "watch", "--config", str(folder / "jetsel.toml")]]
    found = []
    place = None if python in ("", sys.executable) else folder  # so that the other version is not this one
    for number, command in enumerate(commands):
        out = folder / f"watch-{number}.out"
        with out.open("wb") as events, words.open("ab") as errors:
            whole = [python or sys.executable, *command, "--endpoint", endpoint]
            found.append((subprocess.Popen(whole, stdout=events, stderr=errors, cwd=place), out))
    try:
        yield found
    finally:
        for process, _ in found:
            process.send_signal(signal.SIGINT)
        for process, _ in found:
            process.wait(60)


def _events(outs: Outs) -> list[dict[str, Any]]:
    lines = [line for _, out in outs for line in out.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return [event for line in lines if (event := json.loads(line))["event"] == "label"]


def _cpu_s(pids: list[int]) -> float:
    """Return the processor time of these processes so far."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
