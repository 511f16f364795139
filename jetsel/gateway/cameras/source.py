"""What kind of source a text names, and what every kind offers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol
from urllib.parse import urlsplit, urlunsplit

import cv2
import numpy as np

from jetsel.base.errors import ConfigError

SCHEMES = ("rtsp", "rtsps", "http", "https", "rtmp", "tcp", "udp", "srt")  # what FFmpeg reads inside of OpenCV
PICTURES = frozenset({".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp"})


class SourceGoneError(Exception):
    """The source gives no more frames now; it may come back."""


class SourceEndedError(Exception):
    """A file was played to its end."""


class Reader(Protocol):
    """An open source."""

    def grab(self) -> bool:
        """Wait for the next frame, not for long; False where there is none yet. Raises the errors above."""

    def retrieve(self) -> np.ndarray | None:
        """Return its pixels, (height, width[, 3]) uint8 BGR; None where it cannot be decoded."""

    def close(self) -> None:
        """Let go of the source."""


@dataclass(frozen=True)
class Source:
    """text: what opens it. name: for people and events, without passwords."""

    kind: Literal["device", "url", "file", "folder", "pipeline"]
    text: str
    name: str


def source_of(text: str) -> Source:
    """Tell what a SOURCE is; raises ConfigError with the repair where it is nothing that can be watched."""
    scheme, is_url, _ = text.partition("://")
    if " ! " in text:
        if not cv2.videoio_registry.hasBackend(cv2.CAP_GSTREAMER):
            raise ConfigError(
                f"a pipeline needs an OpenCV with GStreamer, and {Path(cv2.__file__).parent} has none, as PyPI's:"
                " use the board's own, or have gst-launch-1.0 serve the frames (docs/cameras.md shows both)"
            )
        return Source("pipeline", text, text.split()[0])
    if is_url:
        if scheme.lower() not in SCHEMES:
            raise ConfigError(f"{scheme}:// is not watched: give one of {', '.join(SCHEMES)}")
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
        raise ConfigError(f"{text}: it is one picture: jetsel classify {text}")
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
