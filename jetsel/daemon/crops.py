"""The boxes of one message: each box is a job, the image is decoded once, and the message gets one reply.

At most AT_ONCE boxes of a message are in the queue; each answered box admits the next one. So a message with many boxes
delays other requests no longer than AT_ONCE images do.
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
LARGEST_SHARE = 1.5  # of a side: a box may reach over the image's border


class Crops:
    """What the jobs of one message with boxes share: the decoded image, and the replies so far. Any thread may call.

    not_admitted: numbers of the boxes that are not in the queue yet. admitted_count: boxes in the queue or in work.
    lock: guards all fields; a thread holds it while it decodes the image, because the other jobs wait for that too.
    """

    def __init__(self, request_id: str, boxes: Boxes, admit: Callable[..., object]) -> None:
        """admit: Admission.admit for a further box; it raises an error if the box would be late."""
        self._id = request_id
        self.boxes = boxes
        self.admit = admit
        self.not_admitted = deque(range(1, len(boxes.xywh)))
        self.admitted_count = 1
        self.lock = threading.RLock()
        self._photograph: Photograph | None = None
        self._error: JetselError | None = None  # why the image could not be decoded
        self._replies: dict[int, Answer | Failure] = {}

    def decode_once(self, decode: Callable[[], Photograph]) -> Photograph:
        """Return the whole image. The first call decodes it; if that fails, each call raises the error of `decode`."""
        with self.lock:
            if self._error is not None:
                raise copy.copy(self._error)
            if self._photograph is None:
                try:
                    self._photograph = decode()
                except JetselError as error:
                    self._error = copy.copy(error)  # a copy without frames, which would hold the message
                    raise
            return self._photograph

    def add_reply(self, number: int, reply: Answer | Failure) -> Answers | Failure | None:
        """Add the reply to a box; return the reply to the message if no box is left, else None.

        number: the box's index, from 0. If the image cannot be decoded, the reply is one failure for all boxes.
        """
        with self.lock:
            self._replies[number] = reply
            if len(self._replies) < len(self.boxes.xywh):
                return None
            if self._error is not None:
                return failure(self._id, self._error)
            return Answers(PROTOCOL_VERSION, self._id, [self._replies[i] for i in range(len(self._replies))])


def pixels_in_boxes(boxes: Boxes, width_px: int, height_px: int) -> int:
    """Return the number of pixels in all boxes of an image of this size, or of it turned by EXIF, if that has more."""
    pixels = [0, 0]
    for (i, size_px), box in product(enumerate([(width_px, height_px), (height_px, width_px)]), boxes.xywh):
        with contextlib.suppress(BadRequestError):  # an invalid box counts nothing: its reply will be this error
            left, top, right, bottom = pixels_of_box(box, boxes.unit, *size_px)
            pixels[i] += (right - left) * (bottom - top)
    return max(pixels)


@dataclass(frozen=True)
class Crop:
    """One box of a message: its index `number`, from 0, and what it shares with the other boxes."""

    crops: Crops
    number: int

    def photograph(self, decode: Callable[[], Photograph]) -> Photograph:
        """Return the image inside the box. Raises what `decode` raises, and BadRequestError for an invalid box."""
        boxes = self.crops.boxes
        box = boxes.xywh[self.number]
        whole, sides = self.crops.decode_once(decode), [abs(value) for value in box if value is not None]
        if boxes.unit == "pixels" and max(sides, default=2) <= 1:
            other = "shares"
        elif boxes.unit == "shares" and max(sides, default=0) > LARGEST_SHARE:
            other = "pixels"
        else:
            return crop(whole, box, boxes.unit)
        raise BadRequestError(
            f"the box {box} cannot be in {boxes.unit}: if it is in {other}, send the unit {other} (boxes_unit)"
        )
