"""Boxes as a query and the Open Inference Protocol's parameters have them: text, since both hold no lists."""

from __future__ import annotations

from typing import Any, Literal

from jetsel.base.errors import BadRequestError, JetselError
from jetsel.gateway.errors import body_of
from jetsel.gateway.sender import AnswerOptions
from jetsel.wire import Answer


class BoxOptions(AnswerOptions, frozen=True):
    """Options of a request that may be about boxes of one image.

    boxes: X,Y,W,H;X,Y,W,H and so on. boxes_unit: None for pixels.
    """

    boxes: str | None = None
    boxes_unit: Literal["pixels", "shares"] | None = None


def read_boxes(options: BoxOptions) -> tuple[list[list[float]], Literal["pixels", "shares"]] | None:
    """Return the boxes and their unit, None for the whole image; raises BadRequestError with an example.

    How many numbers a box has is for the daemon to check.
    """
    if options.boxes is None:
        if options.boxes_unit is not None:
            raise BadRequestError("boxes_unit is given without boxes: add boxes, or leave it out")
        return None
    try:
        found = [[float(number) for number in box.split(",")] for box in options.boxes.split(";")]
    except ValueError:
        raise BadRequestError(
            f'boxes "{options.boxes[:80]}": write X,Y,W,H for each box and ; between two: 10,20,100,80;200,40,64,64'
        ) from None
    return found, options.boxes_unit or "pixels"


def told(outcome: Answer | JetselError) -> Answer | dict[str, Any]:
    """Return what the reply says of one box: its answer, or the same object that an error of a request is."""
    return outcome if isinstance(outcome, Answer) else body_of(outcome)
