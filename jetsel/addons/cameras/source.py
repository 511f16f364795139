"""Kinds of SOURCE; devices, URLs, pipelines and video files read by OpenCV."""

from __future__ import annotations

import os
import re
import stat
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol
from urllib.parse import urlsplit, urlunsplit

import cv2
import numpy as np

from jetsel import image
from jetsel.base.errors import ConfigError, JetselError
from jetsel.base.names import SUFFIXES
from jetsel.image.limits import check_pixels

SCHEMES = ("rtsp", "rtsps", "http", "https", "rtmp", "tcp", "udp", "srt")  # that FFmpeg reads inside OpenCV
_MISTYPED_URL = re.compile(rf"[a-z]+:/|({'|'.join(SCHEMES)})[:/]", re.IGNORECASE)


class SourceGoneError(Exception):
    """The source has no more frames now; it may return."""


class StreamEndedError(SourceGoneError):
    """The stream ended by itself, as an HTTP address with a single image does."""


class SourceEndedError(Exception):
    """A file was played to its end."""


def reason_of(error: Exception) -> str:
    """Return an error's text, with its type if the error was not foreseen."""
    return str(error) if isinstance(error, SourceGoneError | JetselError) else repr(error)


class Reader(Protocol):
    """An open source of frames."""

    def grab(self) -> bool:
        """Wait briefly for the next frame; return False if there is none yet. Raises the errors above."""

    def retrieve(self) -> np.ndarray | None:
        """Return the frame's pixels, (height, width[, 3]) uint8 BGR; None if it cannot be decoded."""

    def close(self) -> None:
        """Release the source."""


@dataclass(frozen=True)
class CameraSource:
    """Where frames come from. text: what is opened, with passwords. name: for people and events, without them."""

    kind: Literal["device", "url", "file", "folder", "pipeline"]
    text: str
    name: str

    @property
    def hides_parts(self) -> bool:
        """Whether the name hides a part of the URL in which two cameras may differ."""
        whole, shown = urlsplit(self.text), urlsplit(self.name)
        return self.kind == "url" and (whole.path, whole.query) != (shown.path, shown.query)


def source_of(text: str, *, may_be_absent: bool = False) -> CameraSource:
    """Return what kind of SOURCE a text is; raises ConfigError with the repair if it is none.

    may_be_absent: accept a path that does not exist yet, as before its disk is mounted, or is not a video yet.
    """
    scheme, is_url, _ = text.partition("://")
    if " ! " in text:
        if not cv2.videoio_registry.hasBackend(cv2.CAP_GSTREAMER):
            raise ConfigError(
                f"a pipeline needs an OpenCV with GStreamer, and {Path(cv2.__file__).parent} is built without it (as "
                "OpenCV from PyPI always is): use the board's own OpenCV, or serve the frames with gst-launch-1.0 "
                "(docs/cameras.md shows both)"
            )
        return CameraSource("pipeline", text, text.split()[0])
    if is_url:
        if scheme.lower() not in SCHEMES:
            raise ConfigError(f"{scheme}:// is not supported: use one of {', '.join(SCHEMES)}")
        return CameraSource("url", text, _public_name(text))
    if text.isascii() and text.isdecimal():
        text = f"/dev/video{int(text)}"
    name = text.encode(errors="surrogateescape").decode(errors="replace")
    if text.startswith("/dev/"):
        return CameraSource("device", text, name)  # it may be plugged in later
    mode = _mode_of(text)
    if stat.S_ISDIR(mode):
        return CameraSource("folder", text, name)
    if not mode and (not may_be_absent or _MISTYPED_URL.match(text)):
        shown = "this SOURCE" if "@" in text else text  # it may be a mistyped URL with a password
        raise ConfigError(
            f"{shown}: there is no such file or folder: SOURCE is a camera (/dev/video0, or 0), a URL (rtsp://..., "
            "http://...), a video file, a folder, or a GStreamer pipeline with ' ! ' in it"
        )
    if Path(text).suffix.lower() in SUFFIXES:
        raise ConfigError(f"{text}: it is a single image: jetsel classify {text}")
    if not may_be_absent and not cv2.VideoCapture(text, cv2.CAP_FFMPEG).isOpened():
        raise ConfigError(f"{text}: OpenCV cannot read it as a video: convert it, for example to Motion JPEG (.avi)")
    return CameraSource("file", text, name)


def _mode_of(path: str) -> int:
    """Return a file's type and permissions as stat(2) does, 0 if it does not exist or cannot be seen."""
    try:
        return Path(path).stat().st_mode
    except (OSError, ValueError):
        return 0


def _public_name(url: str) -> str:
    """Return a URL without what may be a password: user, query, path from a `=` on; with a later `@`, only the host."""
    try:
        parts = urlsplit(url)
        assert parts.port is None or parts.port >= 0  # raises ValueError unless it is a number
    except ValueError:
        scheme = url.partition("://")[0]
        raise ConfigError(
            f"this {scheme}:// URL has no host or port that can be read: write / ? # @ and : of a password "
            "as %2F %3F %23 %40 and %3A"
        ) from None
    if "@" in parts.path + parts.query + parts.fragment:  # "me:12/34@door": this password looks like a port and a path
        return f"{parts.scheme}://{parts.hostname or ''}"
    login, _, host = parts.netloc.rpartition("@")
    if login and parts.scheme in ("tcp", "udp"):  # FFmpeg would print it
        raise ConfigError(f"{parts.scheme}:// knows no user and password: leave them out of the URL")
    return urlunsplit((parts.scheme, host, re.sub(r"/[^/]*(=|%3d).*", "", parts.path, flags=re.IGNORECASE), "", ""))


_BACKENDS = {"device": cv2.CAP_V4L2, "url": cv2.CAP_FFMPEG, "file": cv2.CAP_FFMPEG, "pipeline": cv2.CAP_GSTREAMER}
_PIPELINES_TAKE_LIMITS = tuple(map(int, cv2.__version__.split(".")[:2])) >= (4, 7)  # a board's own OpenCV may be older
_USUAL_FPS = 25.0  # of a file that does not state it


class Capture:
    """An open VideoCapture. OpenCV makes FFmpeg read RTSP over TCP if the camera supports it.

    stall_s: limit for opening and for each frame. A file is played at its own rate, like a camera; stop ends the
    waiting. limits: checked against the size that the stream states. Raises SourceGoneError and BadImageError.
    """

    def __init__(self, source: CameraSource, stall_s: float, stop: threading.Event, limits: image.Limits) -> None:
        self._is_file, self._stall_s, self._stop = source.kind == "file", stall_s, stop
        os.environ.setdefault("OPENCV_VIDEOIO_V4L_SELECT_TIMEOUT", str(max(1, round(stall_s))))  # V4L2 has no other way
        stall_ms = round(stall_s * 1e3)
        times = (cv2.CAP_PROP_OPEN_TIMEOUT_MSEC, stall_ms, cv2.CAP_PROP_READ_TIMEOUT_MSEC, stall_ms)
        takes_times = source.kind == "url" or (source.kind == "pipeline" and _PIPELINES_TAKE_LIMITS)
        self._capture = cv2.VideoCapture(source.text, _BACKENDS[source.kind], times if takes_times else ())
        if not self._capture.isOpened():
            raise SourceGoneError(_why_closed(source))
        size = [round(self._capture.get(side)) for side in (cv2.CAP_PROP_FRAME_WIDTH, cv2.CAP_PROP_FRAME_HEIGHT)]
        if min(size) > 0:  # 0: the stream does not state it
            check_pixels(size[0], size[1], limits)
        self._opened_s, self._n_grabbed = time.monotonic(), 0  # to time the frames of a file

    def grab(self) -> bool:
        """Wait for the next frame, in a file until it is due, and return True.

        Raises SourceEndedError at the end of a file, StreamEndedError at the end of a stream, SourceGoneError after a
        stall.
        """
        began_s = time.monotonic()
        has_one = self._capture.grab()
        if self._is_file:
            if not has_one:
                raise SourceEndedError
            self._n_grabbed += 1
            self._stop.wait(max(0.0, self._opened_s + self._due_s() - time.monotonic()))
        elif time.monotonic() - began_s >= self._stall_s:  # after a stall FFmpeg's decoder returns old frames
            raise SourceGoneError(f"no frame came within {self._stall_s:g} s")
        elif not has_one:
            raise StreamEndedError("its frames ended")
        return True

    def retrieve(self) -> np.ndarray | None:
        """Return the grabbed frame's pixels."""
        good, frame = self._capture.retrieve()
        return frame if good else None

    def close(self) -> None:
        """Release the camera."""
        self._capture.release()

    def _due_s(self) -> float:
        """Return when the frame is due after the start: by its timestamp, else by the file's frame rate."""
        stamp_s = self._capture.get(cv2.CAP_PROP_POS_MSEC) / 1e3
        return stamp_s if stamp_s > 0 else (self._n_grabbed - 1) / (self._capture.get(cv2.CAP_PROP_FPS) or _USUAL_FPS)


def _why_closed(source: CameraSource) -> str:
    """Return why a source cannot be opened, as far as its file shows."""
    if source.kind in ("device", "file") and not _mode_of(source.text):
        return f"there is no such {source.kind}"
    if source.kind == "device":
        if not os.access(source.text, os.R_OK | os.W_OK, effective_ids=True):
            return "this user may not open it: add the user to the group video, and log in again"
        return "it is not a video device, or another program uses it"
    return "it cannot be opened"
