"""Classify what a camera sees, always the newest frame: python examples/camera.py [DEVICE, FILE OR PIPELINE].

Frames come faster than they can be answered, and an old one is of no use. So one thread reads the camera and keeps only
the newest frame, and another classifies whatever is newest when it has time. Press q in the window, or Ctrl-C, to stop.
Without a screen, or with OpenCV's headless build, name a file to draw into: --output answers.avi
A camera on a Jetson's CSI connector is `csi`, or a GStreamer pipeline of your own that ends in appsink; both need an
OpenCV that was built with GStreamer, as JetPack's is.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np

import jetsel
from jetsel.errors import JetselError, NoDaemonError

Newest = queue.Queue  # of one place: a frame, or None at the end


def read(capture: cv2.VideoCapture, newest: Newest[np.ndarray | None], stop: threading.Event) -> int:
    """Keep the newest frame, and return how many were dropped; a file is read at its own pace, as a camera's frames."""
    is_file = capture.get(cv2.CAP_PROP_FRAME_COUNT) > 0
    pause_s = 1 / (capture.get(cv2.CAP_PROP_FPS) or 30) if is_file else 0
    n_dropped, there_is_one = 0, True
    while there_is_one and not stop.wait(pause_s):
        there_is_one, frame = capture.read()
        with contextlib.suppress(queue.Empty):
            newest.get_nowait()
            n_dropped += 1
        newest.put(frame if there_is_one else None)
    return n_dropped


def ask(client: jetsel.Client, frame: np.ndarray, deadline_ms: float, family: str | None) -> str:
    """Return the answer in a few words, or why there is none for this frame."""
    try:
        answer = client.classify(frame, deadline_ms=deadline_ms, family=family)
    except NoDaemonError as error:
        sys.exit(str(error))  # the next frame would fare no better
    except JetselError as error:
        return str(error)
    return f"{answer.label.split(',')[0]} {answer.probability:.0%} ({answer.model})"


CSI = (
    "nvarguscamerasrc ! video/x-raw(memory:NVMM),width=1280,height=720,framerate=30/1 ! nvvidconv"
    " ! video/x-raw,format=BGRx ! videoconvert ! video/x-raw,format=BGR ! appsink drop=1 max-buffers=1"
)


def opened(source: str) -> cv2.VideoCapture:
    """Open a device by its number, a pipeline, or a video file."""
    if source == "csi" or "!" in source:
        return cv2.VideoCapture(CSI if source == "csi" else source, cv2.CAP_GSTREAMER)
    return cv2.VideoCapture(int(source) if source.isdigit() else source)


class Screen:
    """Draws answers on their frames: into a window where there can be one, and into a video file where one is named."""

    def __init__(self, output: str | None, frame_size: tuple[int, int]) -> None:
        has_screen = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
        self._has_window = has_screen and "GUI: NONE" not in " ".join(cv2.getBuildInformation().split())
        code = cv2.VideoWriter.fourcc(*"MJPG")
        self._file = cv2.VideoWriter(output, code, 10, frame_size) if output else None

    def show(self, frame: np.ndarray, text: str) -> bool:
        """Draw the text on the frame and print it; return whether to go on."""
        print(text, flush=True)
        for colour, thickness in (((0, 0, 0), 4), ((255, 255, 255), 1)):  # legible on light and on dark
            cv2.putText(frame, text, (12, 32), cv2.FONT_HERSHEY_SIMPLEX, 0.8, colour, thickness, cv2.LINE_AA)
        if self._file is not None:
            self._file.write(frame)
        if not self._has_window:
            return True
        cv2.imshow("jetsel", frame)
        return cv2.waitKey(1) != ord("q")

    def close(self) -> None:
        """Finish the video file."""
        if self._file is not None:
            self._file.release()


def main() -> None:
    """Read in one thread, classify and draw in this one."""
    parser = argparse.ArgumentParser(description="Classify what a camera sees.")
    parser.add_argument(
        "source", nargs="?", default="0", help="a device number, a video file, csi, or a GStreamer pipeline"
    )
    parser.add_argument("--family", help="the family of models; left out, the daemon's default")
    parser.add_argument("--deadline-ms", type=float, default=100, help="answer within this, or not at all")
    parser.add_argument("--output", help="a video file (.avi) to draw into")
    options = parser.parse_args()
    capture = opened(options.source)
    if not capture.isOpened():
        parser.error(f"cannot open {options.source}")
    width, height = (int(capture.get(side)) for side in (cv2.CAP_PROP_FRAME_WIDTH, cv2.CAP_PROP_FRAME_HEIGHT))
    screen = Screen(options.output, (width, height))
    newest: Newest[np.ndarray | None] = Newest(1)
    stop = threading.Event()
    pool = ThreadPoolExecutor(1)
    reader = pool.submit(read, capture, newest, stop)
    try:
        with jetsel.Client(retry=False) as client:  # a frame that is refused is out of date before it could be retried
            while (frame := newest.get()) is not None:
                if not screen.show(frame, ask(client, frame, options.deadline_ms, options.family)):
                    break
    except KeyboardInterrupt:
        pass
    finally:
        stop.set()
        n_dropped = reader.result()
        capture.release()
        screen.close()
    print(f"{n_dropped} frames were dropped for newer ones")


if __name__ == "__main__":
    main()
