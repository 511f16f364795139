"""The tree that the simulator shows: the files of a folder as they are, with live values and faults in their places."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.simulator.board import Board
from tests.simulator.drivers import Driver
from tests.simulator.fuse import PAGE, Handle, Later
from tests.simulator.rails import Fault, Rail
from tests.simulator.texts import Text

LEVEL = ".simulator/level"  # write watts into it
_CONTROL = LEVEL.partition("/")[0]


class Tree:
    """The files of one board; `set_level` takes the watts that are written into the level file."""

    def __init__(self, folder: Path, board: Board, set_level: Callable[[float], None] | None) -> None:
        self._folder = folder
        self._live = board.live
        self._rails = list(board.rails.values())
        self._set_level = set_level

    def attributes(self, path: str) -> tuple[int, int]:
        self._check(path)
        if self._set_level is not None and path in (_CONTROL, LEVEL):
            return (stat.S_IFDIR | 0o755, 0) if path == _CONTROL else (stat.S_IFREG | 0o200, PAGE)
        found = (self._folder / path).lstat()
        if stat.S_ISREG(found.st_mode):
            return stat.S_IFREG | 0o444, PAGE  # as sysfs says
        return found.st_mode, found.st_size

    def names(self, path: str) -> list[str]:
        names = sorted(entry.name for entry in (self._folder / path).iterdir())
        return [name for name in names if not self._hidden(f"{path}/{name}" if path else name)]

    def target(self, path: str) -> str:
        self._check(path)
        return str((self._folder / path).readlink())

    def open(self, path: str) -> Handle:
        self._check(path)
        if path == LEVEL and self._set_level is not None:
            return _LevelFile(self._set_level)
        if path in self._live:
            rail, driver, text = self._live[path]
            return _LiveFile(rail, driver, text, rail.losses)
        return _StaticFile(self._folder / path)

    def _check(self, path: str) -> None:
        if self._hidden(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def _hidden(self, path: str) -> bool:
        return any(rail.hides(path) for rail in self._rails)


@dataclass(frozen=True)
class _StaticFile:
    path: Path

    def show(self) -> bytes:
        return self.path.read_bytes()

    def store(self, data: bytes) -> None:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))


@dataclass(frozen=True)
class _LevelFile:
    set_level: Callable[[float], None]

    def show(self) -> bytes:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    def store(self, data: bytes) -> None:
        try:
            self.set_level(float(data))
        except ValueError:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL)) from None


@dataclass(frozen=True)
class _LiveFile:
    rail: Rail
    driver: Driver
    text: Text
    losses: int  # of the rail, when the file was opened

    def show(self) -> bytes | Later:
        if self.rail.losses != self.losses:
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        if self.rail.fault is not None:
            return self._faulty(self.rail.fault)
        return self.driver.read(self.text)

    def store(self, data: bytes) -> None:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    def _faulty(self, fault: Fault) -> bytes | Later:
        if fault.kind == "empty":
            return b""
        if fault.kind == "block":
            text = self.text
            return Later(time.monotonic_ns() + round(fault.seconds * 1e9), lambda: b"%d\n" % text(time.monotonic_ns()))
        number = {"eio": errno.EIO, "enodata": errno.ENODATA}[fault.kind]
        raise OSError(number, os.strerror(number))
