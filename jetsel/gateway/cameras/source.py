"""The sources of images: devices, URLs, pipelines and video files, as OpenCV reads them, and a folder that fills."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol
from urllib.parse import urlsplit, urlunsplit

import cv2
import numpy as np

from jetsel import image
from jetsel.base.errors import ConfigError, JetselError

SCHEMES = ("rtsp", "rtsps", "http", "https", "rtmp", "tcp", "udp", "srt")  # what FFmpeg reads inside of OpenCV
PICTURES = frozenset({".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp"})


class SourceGoneError(Exception):
    """The source gives no more frames now; it may come back."""


class SourceEndedError(Exception):
    """A file was played to its end."""


class Reader(Protocol):
    """An open source."""

    def grab(self) -> bool:
        """Wait for the next frame, not for long; False if there is none yet. Raises the errors above."""

    def retrieve(self) -> np.ndarray | None:
        """Return its pixels, (height, width[, 3]) uint8 BGR; None if it cannot be decoded."""

    def close(self) -> None:
        """Let go of the source."""


@dataclass(frozen=True)
class Source:
    """text: what opens it. name: for people and events, without passwords."""

    kind: Literal["device", "url", "file", "folder", "pipeline"]
    text: str
    name: str


def source_of(text: str) -> Source:
    """Tell what a SOURCE is; raises ConfigError with the repair if it is nothing that can be watched."""
    scheme, is_url, _ = text.partition("://")
    if " ! " in text:
        if not cv2.videoio_registry.hasBackend(cv2.CAP_GSTREAMER):
            raise ConfigError(
                f"a pipeline needs an OpenCV with GStreamer, and {Path(cv2.__file__).parent} is built without it (as "
                "OpenCV from PyPI always is): use the board's own OpenCV, or serve the frames with gst-launch-1.0 "
                "(docs/cameras.md shows both)"
            )
        return Source("pipeline", text, text.split()[0])
    if is_url:
        if scheme.lower() not in SCHEMES:
            raise ConfigError(f"{scheme}:// is not supported: use one of {', '.join(SCHEMES)}")
        return Source("url", text, _name_of(text))
    if text.isascii() and text.isdecimal():
        text = f"/dev/video{int(text)}"
    path = Path(text)
    if text.startswith("/dev/"):
        return Source("device", text, text)  # it may be plugged in later
    if path.is_dir():
        return Source("folder", text, text)
    if not path.exists():
        raise ConfigError(
            f"{text}: there is no such file or folder: SOURCE is a camera (/dev/video0, or 0), a URL (rtsp://..., "
            "http://...), a video file, a folder, or a GStreamer pipeline with ' ! ' in it"
        )
    if path.suffix.lower() in PICTURES:
        raise ConfigError(f"{text}: it is a single image: jetsel classify {text}")
    if path.is_file() and not cv2.VideoCapture(text, cv2.CAP_FFMPEG).isOpened():
        raise ConfigError(f"{text}: OpenCV cannot read it as a video: convert it, for example to Motion JPEG (.avi)")
    return Source("file", text, text)


def _name_of(url: str) -> str:
    """Return a URL without what may be a password: user, query, and all beside the host if an `@` comes after it."""
    try:
        parts = urlsplit(url)
        assert parts.port is None or parts.port >= 0  # it raises ValueError unless it is a number
    except ValueError:
        scheme = url.partition("://")[0]
        raise ConfigError(
            f"this {scheme}:// URL has no host or port that can be read: write / ? # @ and : of a password "
            "as %2F %3F %23 %40 and %3A"
        ) from None
    if "@" in parts.path + parts.query + parts.fragment:  # "me:12/34@door": the password looks like a port and a path
        return f"{parts.scheme}://{parts.hostname or ''}"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


_BACKENDS = {"device": cv2.CAP_V4L2, "url": cv2.CAP_FFMPEG, "file": cv2.CAP_FFMPEG, "pipeline": cv2.CAP_GSTREAMER}
_PIPELINES_TAKE_LIMITS = tuple(map(int, cv2.__version__.split(".")[:2])) >= (4, 7)  # a board's own may be older
_USUAL_FPS = 25.0  # of a file that does not say


class Capture:
    """An open VideoCapture. RTSP comes over TCP if the camera can: OpenCV asks FFmpeg for that by itself.

    stall_s: how long opening or a frame may take. A file is played at its own rate, as a camera would show it; stop
    ends that waiting. Raises SourceGoneError.
    """

    def __init__(self, source: Source, stall_s: float, stop: threading.Event) -> None:
        self._is_file, self._stall_s, self._stop = source.kind == "file", stall_s, stop
        os.environ.setdefault("OPENCV_VIDEOIO_V4L_SELECT_TIMEOUT", str(max(1, round(stall_s))))  # V4L2 has no other way
        stall_ms = round(stall_s * 1e3)
        limits = (cv2.CAP_PROP_OPEN_TIMEOUT_MSEC, stall_ms, cv2.CAP_PROP_READ_TIMEOUT_MSEC, stall_ms)
        takes_limits = source.kind == "url" or (source.kind == "pipeline" and _PIPELINES_TAKE_LIMITS)
        self._capture = cv2.VideoCapture(source.text, _BACKENDS[source.kind], limits if takes_limits else ())
        if not self._capture.isOpened():
            raise SourceGoneError("it cannot be opened")
        self._began_s, self._n = time.monotonic(), 0

    def grab(self) -> bool:
        """Wait for the next frame; of a file, until it is due."""
        asked_s = time.monotonic()
        has_one = self._capture.grab()
        if self._is_file:
            if not has_one:
                raise SourceEndedError
            self._n += 1
            self._stop.wait(max(0.0, self._began_s + self._due_s() - time.monotonic()))
        elif time.monotonic() - asked_s >= self._stall_s:  # FFmpeg's decoder gives what it held back, one a timeout
            raise SourceGoneError(f"no frame came within {self._stall_s:g} s")
        elif not has_one:
            raise SourceGoneError("its frames ended")
        return True

    def retrieve(self) -> np.ndarray | None:
        """Return the grabbed frame's pixels."""
        good, frame = self._capture.retrieve()
        return frame if good else None

    def close(self) -> None:
        """Let go of the camera."""
        self._capture.release()

    def _due_s(self) -> float:
        """When the frame is shown, from the beginning: its timestamp, else by the rate that the file states."""
        stamp_s = self._capture.get(cv2.CAP_PROP_POS_MSEC) / 1e3
        return stamp_s if stamp_s > 0 else (self._n - 1) / (self._capture.get(cv2.CAP_PROP_FPS) or _USUAL_FPS)


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
