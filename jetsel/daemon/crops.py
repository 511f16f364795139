"""The boxes of one message: each is a job of its own, the image is decoded once, and there is one reply."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from dataclasses import dataclass

from jetsel.base.errors import JetselError
from jetsel.image import Photograph, crop
from jetsel.wire import PROTOCOL_VERSION, Answer, Answers, Boxes, Failure, failure


class Crops:
    """What the jobs of one message share. Any thread may call."""

    def __init__(self, request_id: str, boxes: Boxes) -> None:
        self._id = request_id
        self.boxes = boxes
        self._lock = threading.Lock()  # held while the image is decoded: the other jobs need it, too
        self._photograph: Photograph | None = None
        self._error: JetselError | None = None  # of the image
        self._replies: dict[int, Answer | Failure] = {}

    def whole(self, decode: Callable[[], Photograph]) -> Photograph:
        """Return the whole image, decoded by the first job that needs it; raises what `decode` does, each time."""
        with self._lock:
            if self._error is not None:
                raise copy.copy(self._error)
            if self._photograph is None:
                try:
                    self._photograph = decode()
                except JetselError as error:
                    self._error = copy.copy(error)  # without its frames, which hold the message
                    raise
            return self._photograph

    def answered(self, number: int, reply: Answer | Failure) -> Answers | Failure | None:
        """Take in what a box came to; return the reply to the message once it is the last of them.

        If the image itself cannot be read, that is the reply, and no list of the same failure for each box.
        """
        with self._lock:
            self._replies[number] = reply
            if len(self._replies) < len(self.boxes.xywh):
                return None
            if self._error is not None:
                return failure(self._id, self._error)
            return Answers(PROTOCOL_VERSION, self._id, [self._replies[i] for i in range(len(self._replies))])


@dataclass(frozen=True)
class Crop:
    """One box of a message. number: its place among them, from 0."""

    crops: Crops
    number: int

    def photograph(self, decode: Callable[[], Photograph]) -> Photograph:
        """Return what is in the box; raises what `decode` does, and BadRequestError for a bad box."""
        boxes = self.crops.boxes
        return crop(self.crops.whole(decode), boxes.xywh[self.number], boxes.unit)

    def answered(self, reply: Answer | Failure) -> Answers | Failure | None:
        """Take in what it came to, as `Crops.answered` does."""
        return self.crops.answered(self.number, reply)
