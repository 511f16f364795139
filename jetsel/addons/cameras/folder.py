"""A folder that receives images: the newest complete one is the frame."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from jetsel import image
from jetsel.addons.cameras.source import SourceGoneError
from jetsel.base.errors import JetselError
from jetsel.base.names import SUFFIXES, system_kind

_LOOK_S = 0.2
_PAUSES = 10  # after listing a large folder, the pause is this many times as long as the listing
_UNFINISHED_S = 5.0  # a file that is no complete image and unchanged for this long is skipped
_TRIED = 8  # most files to try after one listing, the newest first: broken files delay others no longer
_MOST_KINDS = 8  # kinds of other files that are reported, once each

Stamp = tuple[str, int, int, int]
"""Name, inode, bytes, and time of the last change of the content; every image has its own."""


class Folder:
    """Reads the image that arrived last; older images and other files are skipped.

    A file arrives with the first listing that has it, whatever its times say, because clocks may be set back; times
    only order the files of one listing. An incomplete file is tried again, while older ones of its listing are used.
    on_skip: receives sentences about skipped files.
    """

    def __init__(self, path: str, limits: image.Limits, stop: threading.Event, on_skip: Callable[[str], None]) -> None:
        self._path, self._limits, self._stop, self._report = Path(path), limits, stop, on_skip
        self._seen: set[Stamp] = set()  # at the last listing
        self._new: list[Stamp] = []  # not used yet, the newest last
        self._unfinished: dict[Stamp, tuple[float, str]] = {}  # time.monotonic() of the first failure, and the error
        self._kinds: set[str] = set()  # of other files, already reported
        self._frame: np.ndarray | None = None

    def grab(self) -> bool:
        """Return whether there is a new image; wait a moment if there is none."""
        began_s = time.monotonic()
        changed_ns = self._stamps()
        pause_s = max(_LOOK_S, _PAUSES * (time.monotonic() - began_s))
        arrived = sorted(changed_ns.keys() - self._seen, key=lambda stamp: (changed_ns[stamp], stamp))
        self._new = [stamp for stamp in self._new if stamp in changed_ns] + arrived
        self._seen = set(changed_ns)
        self._skip_unfinished()
        for number in reversed(range(len(self._new))[-_TRIED:]):
            stamp = self._new[number]
            try:
                data = image.read_file(self._path / stamp[0], self._limits)
                self._frame = image.decode(data, self._limits, self._limits.max_pixels).bgr
            except (OSError, JetselError) as error:
                since_s, _ = self._unfinished.get(stamp, (time.monotonic(), ""))
                self._unfinished[stamp] = since_s, str(error)
            else:
                del self._new[: number + 1]
                self._unfinished.pop(stamp, None)
                return True
        self._stop.wait(pause_s)
        return False

    def _skip_unfinished(self) -> None:
        """Report files that have not become complete images in time, even if a newer image was used meanwhile."""
        late_s = time.monotonic() - _UNFINISHED_S
        for stamp, (since_s, error) in list(self._unfinished.items()):
            if stamp in self._seen and since_s < late_s:
                self._new = [one for one in self._new if one != stamp]
                self._report(f"{stamp[0]} is skipped: {error}")
            if stamp not in self._seen or since_s < late_s:
                del self._unfinished[stamp]

    def retrieve(self) -> np.ndarray | None:
        """Return the image."""
        return self._frame

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def _stamps(self) -> dict[Stamp, int]:
        """Return the image files, and the time of their last change of any kind, in ns. Raises SourceGoneError."""
        stamps = []
        try:
            with os.scandir(self._path) as entries:
                for entry in entries:
                    kind = _other_kind(entry)
                    if kind is None:
                        stamps.append(_stamp(entry))
                    elif kind and kind not in self._kinds and len(self._kinds) < _MOST_KINDS:
                        self._kinds.add(kind)
                        self._report(f"{entry.name} is skipped, as are all {kind}: only JPEG, PNG and WebP files count")
        except OSError as error:
            raise SourceGoneError(f"the folder cannot be read: {error.strerror}") from None
        return {stamp[1:]: stamp[0] for stamp in stamps if stamp is not None}


def _other_kind(entry: os.DirEntry[str]) -> str | None:
    """Return None for an image file, a name for the kind of any other file, or "" for system files."""
    is_folder, suffix = entry.is_dir(follow_symlinks=False), f".{entry.name.rpartition('.')[2].lower()}"
    if system_kind(entry.name, is_folder=is_folder) is not None:
        return ""
    if is_folder:
        return "subfolders"
    return None if suffix in SUFFIXES else f"{suffix} files" if "." in entry.name else "files without a suffix"


def _stamp(entry: os.DirEntry[str]) -> tuple[int, str, int, int, int] | None:
    """Return a file's last change in ns (by ctime, so that a move counts), and its Stamp; None if it is gone."""
    try:
        status = entry.stat()
    except OSError:
        return None  # it was removed meanwhile, or is a broken link
    return status.st_ctime_ns, entry.name, status.st_ino, status.st_size, status.st_mtime_ns
