"""The daemon under peers that send all they can, and a polite client among them. `python -m benchmarks.flood`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.conditions import conditions
from benchmarks.flooder import QUEUED
from benchmarks.memory import available_mb, forget_peak, memory_mb
from benchmarks.photographs import photographs
from benchmarks.report import table
from benchmarks.servers import ROOT, daemon
from jetsel.base.config import Config
from jetsel.base.errors import JetselError
from jetsel.client import Client

POLITE_PAUSE_S = 0.02
LARGEST_BYTES = int(Config().server.max_image_mb * 1e6)


@dataclass(frozen=True)
class Result:
    """What one flood did. The daemon's own counters tell outcomes; the polite client's latency includes its retries."""

    idle_mb: float
    peak_mb: float
    after_mb: float
    sent: int
    read: int
    outcomes: Counter[str]
    lost_replies: int
    alone_ms: list[float]  # the polite client's before the flood
    amid_ms: list[float]  # and during it
    refused: Counter[str]  # what the polite client gave up on, by error code


def main() -> None:
    """Flood twice: with photographs, and with messages as large as the daemon takes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flood", description=__doc__)
    parser.add_argument("--peers", type=int, default=64, help="half of them read replies, late; default: 64")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each flood; default: 5")
    parser.add_argument("--photos", type=Path, help="a folder or tar archive of JPEG files; the first is sent")
    args = parser.parse_args()
    shown = photographs(args.photos)
    print("# The daemon under a flood\n")
    print("\n".join(conditions()), flush=True)
    small = max(shown.files, key=len)
    large = small.ljust(LARGEST_BYTES, b"\0")  # decoders stop at the picture's end; the socket carries all of it
    peers = _affordable(args.peers, LARGEST_BYTES)
    print(f"- {args.seconds:g} s each; half of the peers read their replies late, half never\n")
    if peers < args.peers:
        print(f"Too little memory is free for {args.peers} peers with the largest messages: they are {peers}.\n")
    results = {
        f"{args.peers} peers, {len(small) / 1e3:.0f} kB each": _flood(small, args.peers, args.seconds),
        f"{peers} peers, {len(large) / 1e6:.0f} MB each": _flood(large, peers, args.seconds),
    }
    columns = [_column(result) for result in results.values()]
    print("\n".join(table(("what", *results), [[name, *(c[name] for c in columns)] for name in columns[0]])))


def _affordable(peers: int, message_bytes: int) -> int:
    """Return how many peers the machine has memory for, with what each has queued itself, if half is left free."""
    held_mb = (QUEUED + 1) * message_bytes / 1e6
    return max(2, min(peers, int(available_mb() / 2 / held_mb)))


def _flood(image: bytes, peers: int, seconds: float) -> Result:
    with tempfile.TemporaryDirectory(prefix="jetsel-") as name:
        folder = Path(name)
        path = folder / "image"
        path.write_bytes(image)
        with daemon(folder) as server, Client(server.address) as polite:
            pid = server.pids[0]
            idle_mb = memory_mb(pid)["VmRSS"]
            forget_peak(pid)
            alone_ms, _ = _ask_politely(polite, path, min(1.0, seconds))
            command = [sys.executable, "-m", "benchmarks.flooder", server.address, str(path), "--seconds", str(seconds)]
            kinds = [["--peers", str(peers - peers // 2), "--reads"], ["--peers", str(peers // 2)]]
            flooders = [subprocess.Popen([*command, *kind], stdout=subprocess.PIPE, cwd=ROOT) for kind in kinds]
            amid_ms, refused = _ask_politely(polite, path, seconds, until=flooders)
            said: Counter[str] = Counter()
            for flooder in flooders:
                said.update(json.loads(flooder.communicate()[0]))
            status = polite.status()
            memory = memory_mb(pid)
    outcomes = Counter(status.requests)
    outcomes["ok"] -= len(alone_ms) + len(amid_ms)
    sent = said.pop("sent")
    return Result(
        idle_mb=idle_mb,
        peak_mb=memory["VmHWM"],
        after_mb=memory["VmRSS"],
        sent=sent,
        read=said.total(),
        outcomes=outcomes,
        lost_replies=status.lost_replies,
        alone_ms=alone_ms,
        amid_ms=amid_ms,
        refused=refused,
    )


def _ask_politely(
    client: Client, path: Path, seconds: float, until: Sequence[subprocess.Popen[bytes]] = ()
) -> tuple[list[float], Counter[str]]:
    """Classify now and then until the processes have ended or the time is over; at least once."""
    latencies_ms: list[float] = []
    refused: Counter[str] = Counter()
    end_s = time.monotonic() + seconds
    while not (latencies_ms or refused) or (
        any(process.poll() is None for process in until) if until else time.monotonic() < end_s
    ):
        began_s = time.perf_counter()
        try:
            client.classify(path)
            latencies_ms.append((time.perf_counter() - began_s) * 1e3)
        except JetselError as error:
            refused[error.code] += 1
        time.sleep(POLITE_PAUSE_S)
    return latencies_ms, refused


def _column(result: Result) -> dict[str, str]:
    rest = {code: count for code, count in result.outcomes.items() if code not in ("ok", "busy")}
    return {
        "resident before, MB": f"{result.idle_mb:.0f}",
        "**most resident (VmHWM), MB**": f"{result.peak_mb:.0f}",
        "resident after, MB": f"{result.after_mb:.0f}",
        "requests that the peers' sockets took": f"{result.sent}",
        "answered by the daemon": f"{result.outcomes['ok']}",
        "refused as busy": f"{result.outcomes['busy']}",
        "other outcomes": ", ".join(f"{code} {count}" for code, count in rest.items()) or "none",
        "replies lost by peers that do not read": f"{result.lost_replies}",
        "replies that the late readers read": f"{result.read}",
        "polite client alone: p50 / p99 ms": _percentiles(result.alone_ms),
        "polite client in the flood: p50 / p99 ms": _percentiles(result.amid_ms),
        "polite client in the flood: answered": f"{len(result.amid_ms)}",
        "polite client in the flood: given up": ", ".join(f"{c} {n}" for c, n in result.refused.items()) or "none",
    }


def _percentiles(latencies_ms: list[float]) -> str:
    if not latencies_ms:
        return "-"
    p50, p99 = np.percentile(latencies_ms, (50, 99))
    return f"{p50:.1f} / {p99:.1f}"


if __name__ == "__main__":
    main()
