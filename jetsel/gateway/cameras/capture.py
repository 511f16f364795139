"""Devices, URLs, pipelines and video files, as OpenCV reads them."""

from __future__ import annotations

import os
import threading
import time

import cv2
import numpy as np

from jetsel.gateway.cameras.source import Source, SourceEndedError, SourceGoneError

_BACKENDS = {"device": cv2.CAP_V4L2, "url": cv2.CAP_FFMPEG, "file": cv2.CAP_FFMPEG, "pipeline": cv2.CAP_GSTREAMER}
_PIPELINES_TAKE_LIMITS = tuple(map(int, cv2.__version__.split(".")[:2])) >= (4, 7)  # a board's own may be older
_USUAL_FPS = 25.0  # of a file that does not say


class Capture:
    """An open VideoCapture. RTSP comes over TCP where the camera can: OpenCV asks FFmpeg for that by itself.

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
