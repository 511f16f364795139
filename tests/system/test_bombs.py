"""Image bombs sent to a real daemon: each is refused by its code, and its memory stays what it was."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from tests.system.daemons import Connect, Daemon, Start
from tests.unit.image.files import (
    ANIMATED,
    bmp,
    canvas,
    frame,
    jpeg_segment,
    noise,
    png,
    png_chunk,
    riff,
)
from tests.unit.image.test_bombs import EIGHT_MB, ROW, SMALL, TEXTS, zeros

MOST_MB = 40.0  # that the daemon's memory may grow by: less than any bomb would take, unpacked


def packed(width: int, height: int, pixels: bytes) -> bytes:
    return png(width, height, 8, 2, b"").replace(png_chunk(b"IDAT", zlib.compress(b"")), png_chunk(b"IDAT", pixels))


def refused() -> dict[str, tuple[bytes, str]]:
    """Files that are refused, each with its code; made when a test asks, since packing them takes seconds."""
    return {
        "PNG of 100,000 x 100,000": (packed(100_000, 100_000, EIGHT_MB), "image-too-large"),
        "PNG whose pixels unpack to 64 MB": (packed(3, 1, zeros(64)), "bad-image"),
        "WebP of 49 million pixels behind a small canvas": (
            riff(canvas(2, 2, ANIMATED) + canvas(7000, 7000, ANIMATED) + frame(noise(2, 2))),
            "bad-image",
        ),
        "JPEG behind 15 MB of FF": (SMALL[:2] + b"\xff" * 15_000_000 + SMALL[2:], "bad-image"),
        "BMP of run lengths": (bmp(7000, 7000, 8, bytes(99), compression=1), "bad-image"),
    }


def answered() -> dict[str, bytes]:
    """Files that cost much to whoever unpacks what the picture does not need; they are answered."""
    return {
        "10 MB of EXIF": SMALL[:2] + jpeg_segment(0xE1, b"Exif\0\0" + bytes(65_000)) * 154 + SMALL[2:],
        "texts that unpack to 600 MB": png(3, 1, 8, 2, ROW, before=b"".join(TEXTS["zTXt"](n) for n in range(90))),
    }


def resident_mb(daemon: Daemon) -> float:
    line = next(line for line in Path(f"/proc/{daemon.process.pid}/status").read_text().splitlines() if "VmHWM" in line)
    return int(line.split()[1]) / 1024


@pytest.mark.slow
def test_bombs_are_refused_and_cost_no_memory(start: Start, connect: Connect, jpeg: bytes) -> None:
    daemon = start("[server]\nworkers = 2\n")
    peer = connect(daemon)
    for _ in range(5):
        assert peer.classify(jpeg)["type"] == "answer"
    before_mb = resident_mb(daemon)
    for name, (data, code) in refused().items():
        assert peer.classify(data).get("code") == code, name
    for name, data in answered().items():
        assert peer.classify(data)["type"] == "answer", name
    largest_mb = max(len(data) for data in (*answered().values(), *(data for data, _ in refused().values()))) / 1e6
    assert resident_mb(daemon) - before_mb < MOST_MB + 3 * largest_mb  # a message lies in memory as it comes and goes
    assert peer.classify(jpeg)["type"] == "answer"
