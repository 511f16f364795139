"""A folder that fills: its newest picture, once that is whole."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from jetsel import image
from jetsel.base.errors import JetselError
from jetsel.gateway.cameras.source import PICTURES, SourceGoneError

_LOOK_S = 0.2
_UNFINISHED_S = 5.0  # a file that is no whole picture and has not changed for so long is told of

Stamp = tuple[int, str, int, int]
"""Time of the last change of its state, name, inode and bytes: another picture has another."""


class Folder:
    """The picture that arrived last; those before it are passed over, as are subfolders and names with a dot before.

    A file is decoded as soon as it is whole: one that is still being written ends too early, and is tried again. told:
    gets a sentence about one that stays so.
    """

    def __init__(self, path: str, limits: image.Limits, stop: threading.Event, told: Callable[[str], None]) -> None:
        self._path, self._limits, self._stop, self._told = Path(path), limits, stop, told
        self._last: Stamp | None = None
        self._since_s, self._is_done = 0.0, True
        self._frame: np.ndarray | None = None

    def grab(self) -> bool:
        """Return whether a new picture is there, after a moment where none is."""
        newest = self._newest()
        if newest != self._last:
            self._last, self._since_s, self._is_done = newest, time.monotonic(), newest is None
        if newest is not None and not self._is_done:
            try:
                data = image.read_file(self._path / newest[1], self._limits)
                self._frame = image.decode(data, self._limits, self._limits.max_pixels).bgr
                self._is_done = True
                return True
            except (OSError, JetselError) as error:
                if time.monotonic() - self._since_s > _UNFINISHED_S:
                    self._is_done = True
                    self._told(f"{newest[1]} is passed over: {error}")
        self._stop.wait(_LOOK_S)
        return False

    def retrieve(self) -> np.ndarray | None:
        """Return the picture."""
        return self._frame

    def close(self) -> None:
        """Nothing is open between two looks."""

    def _newest(self) -> Stamp | None:
        try:
            with os.scandir(self._path) as entries:
                return max(filter(None, map(_stamp, entries)), default=None)
        except OSError as error:
            raise SourceGoneError(f"the folder cannot be read: {error.strerror}") from None


def _stamp(entry: os.DirEntry[str]) -> Stamp | None:
    """Return a picture's stamp. One that is moved here keeps its time of writing, so its state's counts (ctime)."""
    if entry.name.startswith(".") or Path(entry.name).suffix.lower() not in PICTURES:
        return None
    try:
        found = entry.stat()
    except FileNotFoundError:
        return None  # it was removed meanwhile
    return found.st_ctime_ns, entry.name, found.st_ino, found.st_size
