"""Small files of sysfs: numbers that stay open, texts and listings, whatever a file says or lacks."""

from __future__ import annotations

import os
from pathlib import Path

from jetsel.power.sensors.rail import RailError

_LONGEST = 4096  # a page: no attribute of sysfs is longer
_LONGEST_NAME = 64


class Number:
    """A file that holds one integer. It stays open and is read in place: one system call for each reading.

    After a failure it is opened again by its path, since the file of a driver that was bound anew is another one.
    """

    __slots__ = ("_fd", "path")

    def __init__(self, path: Path) -> None:
        """Open the file; raises RailError."""
        self.path = path
        self._fd = -1
        self._open()

    def read(self) -> int:
        """Return what the file says now; raises RailError where it cannot be read or is no integer."""
        if self._fd < 0:
            self._open()
        try:
            text = os.pread(self._fd, 64, 0)
        except OSError as error:
            self.close()
            raise RailError(f"{self.path}: {_words(error)}") from None
        try:
            return int(text)
        except ValueError:
            what = "it is empty" if not text.strip() else f"it says {text[:24]!r}, which is no number"
            raise RailError(f"{self.path}: {what}") from None

    def close(self) -> None:
        """Close the file; reading opens it again."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> None:
        try:
            self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except (OSError, ValueError) as error:
            raise RailError(f"{self.path}: {_words(error)}") from None


def number(path: Path) -> int | None:
    """Return the integer that a file holds, None where there is none."""
    try:
        return int(text(path))
    except ValueError:
        return None


def text(path: Path) -> str:
    """Return what a file says, without white space around it; "" where it cannot be read."""
    return blob(path).decode("utf-8", "replace").strip()


def blob(path: Path) -> bytes:
    """Return the bytes of a file, b"" where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(_LONGEST)
    except (OSError, ValueError):
        return b""


def entries(folder: Path, pattern: str = "*") -> list[Path]:
    """Return what lies in a folder, in the order of names; [] where it cannot be listed."""
    try:
        return sorted(folder.glob(pattern))
    except OSError:
        return []


def exists(path: Path) -> bool:
    """Whether there is such a file."""
    try:
        return path.exists()
    except OSError:
        return False


def is_name(label: str) -> bool:
    """Whether a label can name a rail: printable, of a sensible length."""
    return 0 < len(label) <= _LONGEST_NAME and label.isascii() and label.isprintable()


def root_of(sysfs: str) -> Path:
    """Return the root of sysfs: the folder itself, or `sys` inside it where a copy of a whole board is given."""
    folder = Path(sysfs)
    own = any((folder / part).is_dir() for part in ("bus", "class", "devices", "firmware"))
    return folder / "sys" if not own and (folder / "sys").is_dir() else folder


def _words(error: OSError | ValueError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
