"""Small files of the kernel: numbers whose file stays open, texts, and listings."""

from __future__ import annotations

import os
from pathlib import Path

from jetsel.power.sensors.rail import RailError

_LONGEST_NAME = 64


class NumberFile:
    """A kernel file with one integer. It stays open, so that each reading is one system call.

    The first reading opens it, and so does the one after a failure: a driver that was loaded again has a new file.
    """

    __slots__ = ("_fd", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = -1

    def read(self) -> int:
        """Return the current value. Raises RailError if the file is unreadable or not an integer."""
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
        """Close the file; the next reading opens it again."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def read_int(path: Path | str) -> int | None:
    """Return the integer in a file, None if it is unreadable or has none."""
    try:
        return int(read_text(path))
    except ValueError:
        return None


def read_text(path: Path | str) -> str:
    """Return a file's text without blanks and zero bytes at its ends; "" if it is unreadable."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123  # hundreds are read each second, so use the fast way
            return file.read().decode(errors="replace").strip("\0 \n\t")
    except OSError:
        return ""


def list_names(folder: Path | str) -> list[str]:
    """Return the sorted names in a folder; [] if it cannot be listed."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208  # names are enough
    except OSError:
        return []


def is_name(label: str) -> bool:
    """Return whether a label is a valid rail name: printable ASCII of limited length."""
    return 0 < len(label) <= _LONGEST_NAME and label.isascii() and label.isprintable()


def root_of(sysfs: str) -> Path:
    """Return the root of sysfs: the folder itself, or its `sys` if it is a copy of a whole board's files."""
    folder = Path(sysfs)
    own = any((folder / part).is_dir() for part in ("bus", "class", "devices", "firmware"))
    return folder / "sys" if not own and (folder / "sys").is_dir() else folder
