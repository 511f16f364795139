"""Keeps images of doubtful answers in a folder for each label, as `jetsel calibrate` reads them, up to a size."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import cv2
import numpy as np

from jetsel.base import files
from jetsel.base.names import folder_name
from jetsel.wire import Answer

_JPEG = [cv2.IMWRITE_JPEG_QUALITY, 95]  # features and models differ little from those of the frame
_PAUSE_S = 1.0  # between two images, because frames within a second are alike
_MOST_LETTERS = 50  # of a label in a file's name, at most 200 bytes; the time follows
_LOOK_AGAIN_S = 60.0  # retry in a full folder, where the owner may have made room

_BYTES: dict[Path, int] = {}  # of all files in a folder, which several cameras may use
_counting = threading.Lock()


class Saver:
    """Writes FOLDER/IDENTIFIER/NAME-TIME.jpg. Nothing is removed: a message reports that the folder is full.

    max_bytes: of all files in the folder, whatever their origin. below: probability under which an answer is doubtful,
    besides answers in doubt. on_problem: receives a sentence when saving stops, and when it continues.
    """

    def __init__(self, folder: Path, max_bytes: int, below: float, on_problem: Callable[[str], None]) -> None:
        self._folder, self._max_bytes, self._below, self._on_problem = folder, max_bytes, below, on_problem
        self._key = folder.resolve()
        self._not_before_s = 0.0
        self._is_stopped = False
        self.n_saved = 0

    def save_if_doubtful(self, frame: np.ndarray, answer: Answer) -> None:
        """Save the frame, (height, width[, 3]) uint8 BGR, if its answer is doubtful and there is space."""
        is_doubtful = answer.in_doubt or answer.probability < self._below
        if not is_doubtful or time.monotonic() < self._not_before_s:
            return
        trouble = None
        try:
            if not self._save(cv2.imencode(".jpg", frame, _JPEG)[1].tobytes(), answer):
                trouble = f"the limit is {self._max_bytes / 1e6:g} MB: sort and move the images, or raise --save-mb"
        except OSError as error:
            trouble = f"{error.strerror}: {files.repair_of(error, 'name another folder with --save')}"
        if (trouble is not None) != self._is_stopped:
            state = f"no more images are saved: {trouble}" if trouble else "saving goes on"
            self._on_problem(f"{self._folder}: {state}")
        self._is_stopped = trouble is not None
        self._not_before_s = time.monotonic() + (_LOOK_AGAIN_S if trouble else _PAUSE_S)

    def _save(self, data: bytes, answer: Answer) -> bool:
        """Write an image if there is space; return whether there was. Raises OSError."""
        if self._key not in _BYTES or self._is_stopped:
            _BYTES[self._key] = sum(path.stat().st_size for path in self._folder.rglob("*") if path.is_file())
        with _counting:
            if _BYTES[self._key] + len(data) > self._max_bytes:
                return False
            _BYTES[self._key] += len(data)
        folder = self._folder / folder_name(answer.wnid)
        folder.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"[^\w-]+", "-", answer.label)[:_MOST_LETTERS]
        files.replace(folder / f"{name}-{datetime.now(timezone.utc):%Y%m%dT%H%M%S.%f}.jpg", data, 0o640)
        self.n_saved += 1
        return True
