"""What `jetsel calibrate --if-changed` goes by: whether what a calibration is made from is as it was the last time."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from jetsel import __version__


def state_of(path: Path | None) -> tuple[str, int, int] | None:
    """Return a file as it is now: its path, size in bytes and time of change in ns; None for none."""
    if path is None:
        return None
    seen = path.stat()
    return str(path), seen.st_size, seen.st_mtime_ns


def fingerprint(photographs: Iterable[tuple[Path, str | None]], models: Mapping[str, str], options: object) -> str:
    """Return what stands for all that a calibration is made from, as hexadecimal digits.

    photographs: each with its label; they count by path, size and time of change, as the recording counts them, so none
    is read. models: the hash of each. options: those of the command, as they print. jetsel's own version counts too.
    """
    digest = hashlib.sha256(repr((__version__, sorted(models.items()), options)).encode())
    for path, label in photographs:
        try:
            seen = path.stat()
            known = (seen.st_size, seen.st_mtime_ns)
        except OSError:
            known = None  # it went meanwhile
        digest.update(repr((os.fspath(path), label, known)).encode())
    return digest.hexdigest()


def is_known(recording: Path, now: str) -> bool:
    """Whether the last calibration from this recording that came to its end was made from the same."""
    try:
        return _place(recording).read_text(encoding="ascii", errors="replace") == now
    except OSError:
        return False


def remember(recording: Path, now: str) -> None:
    """Keep what a calibration that came to its end was made from, beside its recording; raises OSError."""
    _place(recording).write_text(now, encoding="ascii")


def _place(recording: Path) -> Path:
    return recording.with_suffix(".made-from")
