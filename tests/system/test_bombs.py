"""Image bombs sent to a real daemon: each is refused by its code, and its memory stays what it was."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from tests.system.daemons import Connect, Daemon, Start
from tests.unit.image.files import png, png_chunk
from tests.unit.image.test_bombs import SMALL, zeros

MOST_MB = 40.0  # that the daemon's memory may grow by: less than any bomb would take, unpacked


def refused() -> dict[str, tuple[bytes, str]]:
    """Files that are refused, each with its code; made when a test asks, since packing them takes a while."""
    small = png(3, 1, 8, 2, b"")
    return {
        "PNG of 100,000 x 100,000": (png(100_000, 100_000, 8, 2, b""), "image-too-large"),
        "PNG whose pixels unpack to 64 MB": (
            small.replace(png_chunk(b"IDAT", zlib.compress(b"")), png_chunk(b"IDAT", zeros(64))),
            "bad-image",
        ),
        "JPEG behind 15 MB of FF": (SMALL[:2] + b"\xff" * 15_000_000 + SMALL[2:], "bad-image"),
    }


def resident_mb(daemon: Daemon) -> float:
    line = next(line for line in Path(f"/proc/{daemon.process.pid}/status").read_text().splitlines() if "VmHWM" in line)
    return int(line.split()[1]) / 1024


@pytest.mark.slow
def test_bombs_are_refused_and_cost_no_memory(start: Start, connect: Connect, jpeg: bytes) -> None:
    daemon = start("[server]\nworkers = 2\nqueue_megapixels = 0.2\n")  # a place in the queue would be refused as busy
    peer = connect(daemon)
    for _ in range(5):
        assert peer.classify(jpeg)["type"] == "answer"
    before_mb = resident_mb(daemon)
    bombs = refused()
    for name, (data, code) in bombs.items():
        assert peer.classify(data).get("code") == code, name
    largest_mb = max(len(data) for data, _ in bombs.values()) / 1e6
    assert resident_mb(daemon) - before_mb < MOST_MB + 3 * largest_mb  # a message lies in memory as it comes and goes
    assert peer.classify(jpeg)["type"] == "answer"
