"""The messages on the socket: a client's requests and the daemon's replies."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from msgspec import Meta, Struct

from jetsel.base.errors import BadRequestError
from jetsel.wire.power import BudgetStatus
from jetsel.wire.status import StatusReply

Id = Annotated[str, Meta(min_length=1, max_length=128)]
Name = Annotated[str, Meta(min_length=1, max_length=128)]


class Pixels(Struct, frozen=True, forbid_unknown_fields=True):
    """Layout of raw pixels in frame two; `stride` is the number of bytes from one row to the next."""

    format: Literal["bgr8", "rgb8", "gray8", "nv12"]
    width: int
    height: int
    stride: int


class Boxes(Struct, frozen=True, forbid_unknown_fields=True):
    """Parts of the image to classify separately: x, y, width and height of each, from the upright image's upper left.

    unit: pixels, or shares of the image's width and height. A box that is not four numbers fails alone; null stands for
    a number that JSON lacks.
    """

    unit: Literal["pixels", "shares"]
    xywh: Annotated[list[list[float | None]], Meta(min_length=1, max_length=64)]


class Classify(Struct, tag="classify", tag_field="type", frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Requests a classification of the image in frame two. The daemon's configuration decides missing fields.

    Defaults are not sent, since an older daemon rejects unknown fields.
    """

    v: int
    id: Id
    family: Name | None = None
    top_k: Annotated[int, Meta(ge=1, le=1000)] = 5
    policy: Name | None = None
    model: Name | None = None
    deadline_ms: Annotated[float, Meta(gt=0, le=3_600_000)] | None = None
    on_doubt: Literal["use", "refuse"] | None = None
    explain: bool = False
    pixels: Pixels | None = None
    on_device: bool = False
    least_accuracy: Annotated[float, Meta(ge=0, le=1)] | None = None
    most_energy_mj: Annotated[float, Meta(gt=0)] | None = None
    wrong_at_most: Annotated[float, Meta(gt=0, le=1)] | None = None
    boxes: Boxes | None = None

    def __post_init__(self) -> None:
        """Raise BadRequestError for numbers that JSON lacks: they would be sent as null, which means no limit."""
        for name in ("deadline_ms", "least_accuracy", "most_energy_mj", "wrong_at_most"):
            if (value := getattr(self, name)) is not None and not math.isfinite(value):
                raise BadRequestError(f'"{name}" is {value}: give a number, or leave it out')


class Status(Struct, tag="status", tag_field="type", frozen=True, forbid_unknown_fields=True):
    """Requests the daemon's state."""

    v: int
    id: Id


class Reload(Struct, tag="reload", tag_field="type", frozen=True, forbid_unknown_fields=True):
    """Requests that the daemon read its configuration, models and calibrations again; for administrators."""

    v: int
    id: Id


Request = Classify | Status | Reload


class Ranked(Struct, frozen=True):
    """One of the top-k labels with its calibrated probability."""

    label: str
    wnid: str
    probability: float


class Ran(Struct, frozen=True):
    """One model run of the request, and the reason. `latency_ms` is for the whole batch, `batch` its size.

    `device_ms` is the accelerator's part of the latency, null if not measured. Bytes are null unless the run was on the
    edge server.
    """

    model: str
    because: str
    confidence: float
    latency_ms: float
    batch: int
    device_ms: float | None = None
    sent_bytes: int | None = None
    received_bytes: int | None = None


class Stages(Struct):
    """Time of each stage. `inference` has one entry for each run, in order; skipped stages are null.

    `waiting` is the total wait for models, `input` the total time to make their inputs.
    """

    queue: float
    decode: float
    features: float | None
    choice: float
    inference: list[float]
    total: float
    waiting: float | None = None
    input: float | None = None


class Explanation(Struct, frozen=True):
    """Details of the choice: the features it used (null if none) and the policy's reasoning.

    `policy_because` says why this policy decided: by request, or why it is the default. `objective` is the cost that
    the calibration minimises; `budget` is given whether or not it had an effect.
    """

    features: dict[str, float] | None
    distance: float | None
    steps: list[str]
    decoded_width_px: int
    decoded_height_px: int
    policy_because: str | None = None
    objective: str | None = None
    budget: BudgetStatus | None = None


class Answer(Struct, tag="answer", tag_field="type", frozen=True):
    """The label of the image, how it was found, and its cost.

    `wrong_at_most` is the promised share of wrong answers among those not `in_doubt`; null without a promise.
    `operating_point` is the policy selected by load, deadline or power budget; null if none of them applies.
    """

    v: int
    id: str
    family: str
    label: str
    wnid: str
    probability: float
    top_k: list[Ranked]
    model: str
    policy: str
    because: str
    in_doubt: bool
    cut_short: bool
    ran: list[Ran]
    stages_ms: Stages
    energy_mj: float | None
    energy_reason: str | None
    width_px: int
    height_px: int
    explanation: Explanation | None = None
    energy_estimated: bool = False
    out_of_conditions: list[str] = []
    wrong_at_most: float | None = None
    operating_point: str | None = None


class Failure(Struct, tag="failure", tag_field="type", frozen=True):
    """Why there is no answer. `code` is stable; `retry` says whether the same request may succeed later."""

    v: int
    id: str | None
    code: str
    retry: bool
    message: str


class Answers(Struct, tag="answers", tag_field="type", frozen=True):
    """The answer for each box of a request, in their order, or why there is none."""

    v: int
    id: str
    answers: list[Answer | Failure]


class Reloaded(Struct, tag="reloaded", tag_field="type", frozen=True):
    """The daemon has read its files again; `changed` names the differences."""

    v: int
    id: str
    changed: list[str]


Reply = Answer | Answers | Failure | StatusReply | Reloaded
