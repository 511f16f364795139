"""A real `jetsel watch`, started as a process, and what it told."""

import json
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from tests.system.command import COMMAND
from tests.waiting import until

Event = dict[str, Any]


@dataclass
class Watcher:
    """A running `jetsel watch`."""

    process: subprocess.Popen[bytes]
    out: Path
    err: Path

    def events(self, kind: str | None = None) -> list[Event]:
        """All that it told so far, or what is of one kind; a line that is not whole yet is left out."""
        lines = self.out.read_text().splitlines(keepends=True)
        found: list[Event] = [json.loads(line) for line in lines if line.endswith("\n")]
        return [event for event in found if kind in (None, event["event"])]

    def states(self, kind: str) -> list[str]:
        return [event["state"] for event in self.events(kind)]

    def wait_for(self, kind: str, n: int = 1) -> Event:
        """Return the n-th event of a kind, once it is told."""
        until(lambda: len(self.events(kind)) >= n or self._fail_if_ended())
        return self.events(kind)[n - 1]

    def said(self) -> str:
        return self.err.read_text()

    def end(self, number: int = signal.SIGINT) -> Event:
        """Interrupt it and return its summary."""
        self.process.send_signal(number)
        assert self.process.wait(60) == 0, self.said()
        return self.events("summary")[0]

    def _fail_if_ended(self) -> bool:
        assert self.process.poll() is None, self.said()
        return False


def launch(
    folder: Path, source: str | Path | None, endpoint: str, *options: str, env: dict[str, str] | None = None
) -> Watcher:
    """Start one; what it tells lies in `folder`. source: None if the options name it."""
    number = len(list(folder.glob("watch-*.out")))
    out, err = folder / f"watch-{number}.out", folder / f"watch-{number}.err"
    environment = {**os.environ, **(env or {})}
    sources = [] if source is None else [str(source)]
    command = [*COMMAND, "watch", *sources, "--endpoint", endpoint, *options]
    with out.open("wb") as told, err.open("wb") as said:
        return Watcher(subprocess.Popen(command, stdout=told, stderr=said, env=environment), out, err)


def film(path: Path, pictures: list[np.ndarray], n_each: int, fps: float = 20.0) -> Path:
    """Write a video that shows each picture for some frames; of JPEG, so that each frame stands for itself."""
    height, width = pictures[0].shape[:2]
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), fps, (width, height))
    for picture in pictures:
        for _ in range(n_each):
            writer.write(picture)
    writer.release()
    return path


def frames(path: Path) -> list[np.ndarray]:
    """What a program that reads the video sees."""
    capture = cv2.VideoCapture(str(path), cv2.CAP_FFMPEG)
    found = []
    while (read := capture.read())[0]:
        found.append(read[1])
    capture.release()
    return found
