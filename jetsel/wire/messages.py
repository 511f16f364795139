"""What is sent over the socket: a client's requests, and the daemon's replies."""

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
    """How raw pixels lie in frame two, as cameras have them; `stride` is the bytes from one row to the next."""

    format: Literal["bgr8", "rgb8", "gray8", "nv12"]
    width: int
    height: int
    stride: int


class Boxes(Struct, frozen=True, forbid_unknown_fields=True):
    """Parts of the image, each to be classified: x, y, width and height of each, from the upright image's upper left.

    unit: pixels, or shares of the image's width and height. A box that is not four numbers fails alone; null stands for
    a number that JSON does not have.
    """

    unit: Literal["pixels", "shares"]
    xywh: Annotated[list[list[float | None]], Meta(min_length=1, max_length=64)]


class Classify(Struct, tag="classify", tag_field="type", frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Asks what the photograph in frame two shows. What is left out is decided by the daemon's configuration.

    Defaults are left out on the wire: an older daemon refuses fields that it does not know.
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
        """Reject what JSON has no number for: it would be sent as null, which is no limit."""
        for name in ("deadline_ms", "least_accuracy", "most_energy_mj", "wrong_at_most"):
            if (value := getattr(self, name)) is not None and not math.isfinite(value):
                raise BadRequestError(f'"{name}" is {value}: give a number, or leave it out')


class Status(Struct, tag="status", tag_field="type", frozen=True, forbid_unknown_fields=True):
    """Asks what the daemon serves, and its state."""

    v: int
    id: Id


class Reload(Struct, tag="reload", tag_field="type", frozen=True, forbid_unknown_fields=True):
    """Asks the daemon to read its configuration, models and calibrations again; for administrators."""

    v: int
    id: Id


Request = Classify | Status | Reload


class Ranked(Struct, frozen=True):
    """One label of the answer's top-k with its calibrated probability."""

    label: str
    wnid: str
    probability: float


class Ran(Struct, frozen=True):
    """One model that ran for the request, and why. `latency_ms` is the whole batch's, `batch` its size.

    `device_ms` is what the device itself took of it, null if that is not measured. Bytes are of a run on the edge,
    null of one here.
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
    """Where the time went. `inference` has one entry for each run, in order; stages that did not happen are null.

    `waiting` is all waiting for models together, `input` the making of all their inputs.
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
    """More about the choice: the features it read (null if it read none) and how the policy argued.

    `policy_because` says why this policy and no other decided: the request, or what the default was chosen for.
    `objective` is what the calibration was to save; `budget` stands there whether or not it changed anything.
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
    """What the photograph shows, who said so, and what it took.

    `wrong_at_most` is the promised share of wrong answers, which counts those that are not `in_doubt`; null if nothing
    was promised. `operating_point` is the policy that load, deadline or power budget led to; null if they lead nowhere.
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
    """What each box of a request shows, in their order, or why it has no answer."""

    v: int
    id: str
    answers: list[Answer | Failure]


class Reloaded(Struct, tag="reloaded", tag_field="type", frozen=True):
    """The daemon serves what its files say now; `changed` names what is different."""

    v: int
    id: str
    changed: list[str]


Reply = Answer | Answers | Failure | StatusReply | Reloaded
