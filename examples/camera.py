"""Classify what a camera sees, always the newest frame: python examples/camera.py [DEVICE NUMBER OR VIDEO FILE].

Frames come faster than they can be answered, and an old one is of no use. So one thread reads the camera and keeps only
the newest frame, and another classifies whatever is newest when it has time. Press q in the window, or Ctrl-C, to stop.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import threading

import cv2
import numpy as np

import jetsel
from jetsel.errors import JetselError


def read(capture: cv2.VideoCapture, newest: queue.Queue[np.ndarray | None], stop: threading.Event) -> None:
    """Keep the newest frame in a queue of one place; a file is read at its own pace, as a camera would give it."""
    is_file = capture.get(cv2.CAP_PROP_FRAME_COUNT) > 0
    pause_s = 1 / (capture.get(cv2.CAP_PROP_FPS) or 30) if is_file else 0
    n_dropped, there_is_one = 0, True
    while there_is_one and not stop.wait(pause_s):
        there_is_one, frame = capture.read()
        with contextlib.suppress(queue.Empty):
            newest.get_nowait()
            n_dropped += 1
        newest.put(frame if there_is_one else None)
    print(f"{n_dropped} frames were dropped for newer ones")


def show(frame: np.ndarray, text: str, has_window: bool) -> bool:
    """Draw the answer on the frame, or print it where there is no screen; return whether to go on."""
    if not has_window:
        print(text, flush=True)
        return True
    cv2.putText(frame, text, (12, 32), cv2.FONT_HERSHEY_SIMPLEX, 0.8, (0, 0, 0), 4, cv2.LINE_AA)
    cv2.putText(frame, text, (12, 32), cv2.FONT_HERSHEY_SIMPLEX, 0.8, (255, 255, 255), 1, cv2.LINE_AA)
    cv2.imshow("jetsel", frame)
    return cv2.waitKey(1) != ord("q")


def main() -> None:
    """Read in one thread, classify and show in this one."""
    parser = argparse.ArgumentParser(description="Classify what a camera sees.")
    parser.add_argument("source", nargs="?", default="0", help="a device number, or a video file (default: 0)")
    parser.add_argument("--deadline-ms", type=float, default=100, help="answer within this, or not at all")
    options = parser.parse_args()
    capture = cv2.VideoCapture(int(options.source) if options.source.isdigit() else options.source)
    if not capture.isOpened():
        parser.error(f"cannot open {options.source}")
    has_screen = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    has_window = has_screen and "GUI: NONE" not in " ".join(cv2.getBuildInformation().split())
    newest: queue.Queue[np.ndarray | None] = queue.Queue(1)
    stop = threading.Event()
    reader = threading.Thread(target=read, args=(capture, newest, stop))
    reader.start()
    try:
        with jetsel.Client(retry=False) as client:  # a frame that is refused is out of date before it could be retried
            while (frame := newest.get()) is not None:
                try:
                    answer = client.classify(frame, deadline_ms=options.deadline_ms)
                    text = f"{answer.label.split(',')[0]} {answer.probability:.0%} ({answer.model})"
                except JetselError as error:
                    text = str(error)
                if not show(frame, text, has_window):
                    break
    except KeyboardInterrupt:
        pass
    finally:
        stop.set()
        reader.join()
        capture.release()


if __name__ == "__main__":
    main()
