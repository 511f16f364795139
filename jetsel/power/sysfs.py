"""Small files of the kernel: numbers that stay open, texts and listings, whatever a file says or lacks."""

from __future__ import annotations

import os
from pathlib import Path

from jetsel.power.sensors.rail import RailError

_LONGEST_NAME = 64


class Number:
    """A file that holds one integer. It stays open and is read in place: one system call for each reading.

    It is opened by the first reading, and again by the one after a failure, since the file of a driver that was bound
    anew is another one.
    """

    __slots__ = ("_fd", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = -1

    def read(self) -> int:
        """Return what the file says now; raises RailError if it cannot be read or is no integer."""
        try:
            if self._fd < 0:
                self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            content = os.pread(self._fd, 64, 0)
        except OSError as error:
            self.close()
            raise RailError(f"{self.path}: {error.strerror}") from None
        try:
            return int(content)
        except ValueError:
            raise RailError(f"{self.path}: it contains {content[:24]!r}, which is not a number") from None

    def close(self) -> None:
        """Close the file; reading opens it again."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def number(path: Path | str) -> int | None:
    """Return the whole number that a file holds, None if there is none."""
    try:
        return int(text(path))
    except ValueError:
        return None


def text(path: Path | str) -> str:
    """Return what a file says, without blanks and zero bytes at its ends; "" if it cannot be read."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123  # hundreds are read each second: the short way
            return file.read().decode(errors="replace").strip("\0 \n\t")
    except OSError:
        return ""


def names(folder: Path | str) -> list[str]:
    """Return what a folder holds, in the order of names; [] if it cannot be listed."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208  # names are enough
    except OSError:
        return []


def is_name(label: str) -> bool:
    """Whether a label can name a rail: printable, of a sensible length."""
    return 0 < len(label) <= _LONGEST_NAME and label.isascii() and label.isprintable()


def root_of(sysfs: str) -> Path:
    """Return the root of sysfs: the folder itself, or `sys` inside it if a copy of a whole board is given."""
    folder = Path(sysfs)
    own = any((folder / part).is_dir() for part in ("bus", "class", "devices", "firmware"))
    return folder / "sys" if not own and (folder / "sys").is_dir() else folder
