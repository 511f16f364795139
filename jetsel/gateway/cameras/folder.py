"""A folder that fills: its newest image that is whole."""

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
_UNFINISHED_S = 5.0  # a file that is no whole image and has not changed for this long is given up
_TRIED = 8  # files of one look, the newest first: a burst of broken ones takes no longer

Stamp = tuple[int, str, int, int]
"""Time of the last change of its state, name, inode and bytes: another image has another."""


class Folder:
    """The whole image that arrived last; older ones are skipped, as are subfolders and names that begin with a dot.

    A file is decoded as soon as it is whole: one that is still being written ends too early, and is tried again. Until
    then an older one that arrived since the last look is taken. told: gets a sentence about a file that is given up.
    """

    def __init__(self, path: str, limits: image.Limits, stop: threading.Event, told: Callable[[str], None]) -> None:
        self._path, self._limits, self._stop, self._told = Path(path), limits, stop, told
        self._last: Stamp | None = None
        self._unfinished: dict[Stamp, tuple[float, str]] = {}  # since when, of time.monotonic(), and what is wrong
        self._given_up: set[Stamp] = set()
        self._frame: np.ndarray | None = None

    def grab(self) -> bool:
        """Return whether a new image is there, after a moment if none is."""
        stamps = self._stamps()
        self._given_up &= stamps
        self._give_up(stamps)
        for stamp in sorted(stamps - self._given_up, reverse=True)[:_TRIED]:
            if self._last is not None and stamp <= self._last:
                break
            try:
                data = image.read_file(self._path / stamp[1], self._limits)
                self._frame = image.decode(data, self._limits, self._limits.max_pixels).bgr
            except (OSError, JetselError) as error:
                since_s, _ = self._unfinished.get(stamp, (time.monotonic(), ""))
                self._unfinished[stamp] = since_s, str(error)
            else:
                self._last = stamp
                self._unfinished.pop(stamp, None)
                return True
        self._stop.wait(_LOOK_S)
        return False

    def _give_up(self, stamps: set[Stamp]) -> None:
        """Report the files that have been no whole image for too long, even if a newer image was taken meanwhile."""
        late_s = time.monotonic() - _UNFINISHED_S
        for stamp, (since_s, error) in list(self._unfinished.items()):
            if stamp in stamps and since_s < late_s:
                self._given_up.add(stamp)
                self._told(f"{stamp[1]} is skipped: {error}")
            if stamp not in stamps or since_s < late_s:
                del self._unfinished[stamp]

    def retrieve(self) -> np.ndarray | None:
        """Return the image."""
        return self._frame

    def close(self) -> None:
        """Nothing is open between two looks."""

    def _stamps(self) -> set[Stamp]:
        try:
            with os.scandir(self._path) as entries:
                return set(filter(None, map(_stamp, entries)))
        except OSError as error:
            raise SourceGoneError(f"the folder cannot be read: {error.strerror}") from None


def _stamp(entry: os.DirEntry[str]) -> Stamp | None:
    """Return an image's stamp. One that is moved here keeps its time of writing, so its state's counts (ctime)."""
    if entry.name.startswith(".") or Path(entry.name).suffix.lower() not in PICTURES:
        return None
    try:
        found = entry.stat()
    except FileNotFoundError:
        return None  # it was removed meanwhile
    return found.st_ctime_ns, entry.name, found.st_ino, found.st_size
