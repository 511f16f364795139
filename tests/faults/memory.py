"""Memory that ends just above what the daemon holds: each photograph is answered or refused, and the daemon goes on.

python -m tests.faults.memory

First by RLIMIT_AS, past which an allocation fails; then, as root, by a memory cgroup, past which the kernel kills, and
the daemon is started again as a service manager does.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import resource
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from benchmarks.conditions import conditions
from benchmarks.report import table
from jetsel.config import Config
from tests.faults.watch import held
from tests.system.daemons import Daemon, Peer, drawn, encoded, launch, wait_until_ready

MEGAPIXELS = (0.02, 0.5, 2.0, 8.0, 12.0, 24.0, 48.0)
WEBP_MEGAPIXELS = 12.0  # larger ones take long to encode
MODELS = ("xs", "xl", None)
AT_ONCE = 6
PATIENCE_S = 5.0  # for a reply that libzmq may have lost with its connection
MARGINS_MB = (400.0, 100.0, 20.0, 0.0)
LEAST_TO_START_MB = 100.0  # in a cgroup: with less it is killed before it is ready
MOST_TRIES = 5
CGROUPS = Path("/sys/fs/cgroup")


@dataclass
class Squeezed:
    """What became of the photographs. silent: a message that libzmq got no memory for, so that it hung up."""

    outcomes: Counter[str] = field(default_factory=Counter)
    silent: int = 0
    killed: int = 0
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Photo:
    """One request's image."""

    name: str
    data: bytes
    pixels: dict[str, Any] | None = None


def photos(megapixels: Sequence[float] = MEGAPIXELS) -> list[Photo]:
    """Photographs of these sizes in each format, those that are within the limit of bytes."""
    largest = int(Config().server.max_image_mb * 1e6)
    scene, found = drawn(1, 600, 800), []
    for size in megapixels:
        height = int((size * 1e6 * 3 / 4) ** 0.5)
        picture = cv2.resize(scene, (height * 4 // 3, height))
        found.append(Photo(f"{size:g} MP progressive JPEG", _progressive(picture)))
        kinds = (".jpg", ".png", ".bmp", ".webp") if size <= WEBP_MEGAPIXELS else (".jpg", ".png", ".bmp")
        found += [Photo(f"{size:g} MP {kind}", encoded(picture, kind)) for kind in kinds]
        layout = {"format": "nv12", "width": picture.shape[1] // 2 * 2, "height": height // 2 * 2}
        layout["stride"] = layout["width"]
        raw = bytes(layout["width"] * layout["height"] * 3 // 2)
        found.append(Photo(f"{size:g} MP nv12", raw, layout))
    return [photo for photo in found if len(photo.data) <= largest]


def _progressive(picture: np.ndarray) -> bytes:
    good, data = cv2.imencode(".jpg", picture, (cv2.IMWRITE_JPEG_PROGRESSIVE, 1))
    assert good
    return data.tobytes()


def squeeze(daemon: Daemon, shown: Sequence[Photo], margin_mb: float) -> Squeezed:
    """Send the photographs while the address space may grow by no more than this (prlimit(2), RLIMIT_AS)."""
    pid = daemon.process.pid
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[0])
    most = int(pages * resource.getpagesize() + margin_mb * 1e6)
    before = resource.prlimit(pid, resource.RLIMIT_AS)
    resource.prlimit(pid, resource.RLIMIT_AS, (most, before[1]))
    found = Squeezed()
    try:
        for photo, model in itertools.product(shown, MODELS):
            _send(daemon, photo, model, found)
            if daemon.process.poll() is not None:
                found.wrong.append(
                    f"the daemon ended at {photo.name}: {daemon.log.read_text(encoding='utf-8')[-2000:]}"
                )
                return found
        if not _answers(daemon):
            found.wrong.append("a small photograph was not answered afterwards")
    finally:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_AS, before)
    return found


def _send(daemon: Daemon, photo: Photo, model: str | None, found: Squeezed) -> None:
    peer = Peer(daemon.endpoint)
    try:
        for number in range(AT_ONCE):
            peer.send({"type": "classify", "id": str(number), "model": model, "pixels": photo.pixels}, photo.data)
        for answered in range(AT_ONCE):
            if not peer.socket.poll(PATIENCE_S * 1e3):
                found.silent += AT_ONCE - answered
                return
            reply = peer.receive()
            outcome = reply.get("code", reply["type"])
            found.outcomes[outcome] += 1
            if outcome not in ("answer", "busy") or not reply.get("retry", True):
                found.wrong.append(f"{photo.name}: {outcome}, {reply.get('message')}")
    finally:
        peer.close()


def _answers(daemon: Daemon) -> bool:
    """Whether a small photograph is answered now."""
    peer = Peer(daemon.endpoint)
    try:
        peer.send({"type": "classify"}, encoded(drawn()))
        return bool(peer.socket.poll(PATIENCE_S * 1e3)) and peer.receive()["type"] == "answer"
    finally:
        peer.close()


@contextlib.contextmanager
def cgroup(limit_mb: float) -> Iterator[Path]:
    """A memory cgroup with this limit, of either version (the kernel's cgroup-v1/memory.rst, cgroup-v2.rst)."""
    is_old = (CGROUPS / "memory").is_dir()
    folder = (CGROUPS / "memory" if is_old else CGROUPS) / f"jetsel-test-{os.getpid()}"
    folder.mkdir()
    (folder / ("memory.limit_in_bytes" if is_old else "memory.max")).write_text(str(int(limit_mb * 1e6)))
    try:
        yield folder
    finally:
        folder.rmdir()


def confine(folder: Path, shown: Sequence[Photo], limit_mb: float) -> Squeezed:
    """Send the photographs to a daemon in a cgroup with this limit; where it is killed, start it again."""
    found = Squeezed()
    with cgroup(limit_mb) as group:
        prefix = ("sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh")
        daemon = launch(folder, prefix=prefix)
        try:
            wait_until_ready(daemon)
            for photo in shown:
                _send(daemon, photo, None, found)
                daemon = _started_again(daemon, folder, prefix, found)
            tries = 0
            while not _answers(daemon) and tries < MOST_TRIES:
                tries += 1
                daemon = _started_again(daemon, folder, prefix, found)
            if tries == MOST_TRIES:
                found.wrong.append("a small photograph was not answered afterwards")
        finally:
            daemon.process.kill()
            daemon.process.wait(60)
    return found


def _started_again(daemon: Daemon, folder: Path, prefix: Sequence[str], found: Squeezed) -> Daemon:
    """Return the daemon, or the next one where the kernel has killed it."""
    if daemon.process.poll() is None:
        return daemon
    if daemon.process.returncode != -signal.SIGKILL:
        found.wrong.append(
            f"it ended with {daemon.process.returncode}: {daemon.log.read_text(encoding='utf-8')[-2000:]}"
        )
    found.killed += 1
    daemon = launch(folder, prefix=prefix)
    wait_until_ready(daemon)
    return daemon


def main() -> None:
    """Squeeze a daemon in every way that this machine allows and print what it showed."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.memory", description=__doc__)
    parser.add_argument("--margins-mb", type=float, nargs="+", default=MARGINS_MB, help="above what the daemon holds")
    args = parser.parse_args()
    shown = photos()
    results: dict[str, Squeezed] = {}
    print("# Memory that ends near what the daemon holds\n")
    print("\n".join(conditions()))
    print(f"- {len(shown)} photographs of {min(MEGAPIXELS):g} to {max(MEGAPIXELS):g} megapixels, {AT_ONCE} at once\n")
    with tempfile.TemporaryDirectory(prefix="jetsel-") as name:
        folder = Path(name)
        daemon = launch(folder)
        try:
            wait_until_ready(daemon)
            assert _answers(daemon)
            resident_mb = held(daemon.process.pid).resident_mb
            for margin_mb in args.margins_mb:
                results[f"RLIMIT_AS, {margin_mb:g} MB left"] = squeeze(daemon, shown, margin_mb)
        finally:
            daemon.process.terminate()
            daemon.process.wait(60)
        for margin_mb in args.margins_mb if os.geteuid() == 0 else ():
            if margin_mb >= LEAST_TO_START_MB:
                limit_mb = resident_mb + margin_mb
                results[f"cgroup of {limit_mb:.0f} MB"] = confine(folder, shown, limit_mb)
    _print(resident_mb, results)
    raise SystemExit(any(result.wrong for result in results.values()))


def _print(resident_mb: float, results: dict[str, Squeezed]) -> None:
    print(f"The daemon's resident memory before: {resident_mb:.0f} MB.\n")
    lines = [
        [
            name,
            str(result.outcomes["answer"]),
            str(result.outcomes["busy"]),
            str(result.silent),
            str(result.killed),
            "; ".join(result.wrong[:3]) or "nothing",
        ]
        for name, result in results.items()
    ]
    head = ("limit", "answered", "refused, `busy`", "no reply", "killed and started again", "wrong")
    print("\n".join(table(head, lines)))


if __name__ == "__main__":
    main()
