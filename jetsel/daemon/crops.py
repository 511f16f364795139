"""The boxes of one message: each is a job of its own, the image is decoded once, and there is one reply.

The first box has the image decoded; then AT_ONCE are in the queue, and each that is answered gives its place to the
next. So a message with many boxes keeps other requests waiting no longer than these few do.
"""

from __future__ import annotations

import contextlib
import copy
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

from jetsel.base.errors import BadRequestError, JetselError
from jetsel.image import Photograph, crop, pixels_of_box
from jetsel.wire import PROTOCOL_VERSION, Answer, Answers, Boxes, Failure, failure

AT_ONCE = 2
MOST_SHARE = 1.5  # of a side: a box may reach over the edge


class Crops:
    """What the jobs of one message share. Any thread may call.

    left: the boxes whose turn has not come, by number. in_work: how many are in the queue, or in work. lock: guards all
    of it, also while the image is decoded, which the other jobs need, too.
    """

    def __init__(self, request_id: str, boxes: Boxes, admit: Callable[..., None]) -> None:
        """admit: raises what keeps a box from being in time, as Admission.admit does."""
        self._id = request_id
        self.boxes = boxes
        self.admit = admit
        self.left = deque(range(1, len(boxes.xywh)))
        self.in_work = 1
        self.lock = threading.RLock()
        self._photograph: Photograph | None = None
        self._error: JetselError | None = None  # of the image
        self._replies: dict[int, Answer | Failure] = {}

    def whole(self, decode: Callable[[], Photograph]) -> Photograph:
        """Return the whole image, decoded by the first job that needs it; raises what `decode` does, each time."""
        with self.lock:
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
        with self.lock:
            self._replies[number] = reply
            if len(self._replies) < len(self.boxes.xywh):
                return None
            if self._error is not None:
                return failure(self._id, self._error)
            return Answers(PROTOCOL_VERSION, self._id, [self._replies[i] for i in range(len(self._replies))])


def pixels_of(boxes: Boxes, width_px: int, height_px: int) -> int:
    """Return how many pixels the boxes have in all; the header may not tell which way up the image is: the larger."""
    pixels = [0, 0]
    for (way, size_px), box in product(enumerate([(width_px, height_px), (height_px, width_px)]), boxes.xywh):
        with contextlib.suppress(BadRequestError):  # which will be the reply to this box
            left, top, right, bottom = pixels_of_box(box, boxes.unit, *size_px)
            pixels[way] += (right - left) * (bottom - top)
    return max(pixels)


@dataclass(frozen=True)
class Crop:
    """One box of a message. number: its place among them, from 0."""

    crops: Crops
    number: int

    def photograph(self, decode: Callable[[], Photograph]) -> Photograph:
        """Return what is in the box; raises what `decode` does, and BadRequestError for a bad box."""
        boxes = self.crops.boxes
        box = boxes.xywh[self.number]
        whole, sides = self.crops.whole(decode), [abs(value) for value in box if value is not None]
        if boxes.unit == "pixels" and max(sides, default=2) <= 1:
            other = "shares"
        elif boxes.unit == "shares" and max(sides, default=0) > MOST_SHARE:
            other = "pixels"
        else:
            return crop(whole, box, boxes.unit)
        raise BadRequestError(
            f"the box {box} cannot be in {boxes.unit}: if it is in {other}, send the unit {other} (boxes_unit)"
        )

    def answered(self, reply: Answer | Failure) -> Answers | Failure | None:
        """Take in what it came to, as `Crops.answered` does."""
        return self.crops.answered(self.number, reply)
