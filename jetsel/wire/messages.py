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
    """Layout of frame two if it holds raw pixels instead of an image file. `stride`: bytes from a row to the next."""

    format: Literal["bgr8", "rgb8", "gray8", "nv12"]
    width: int
    height: int
    stride: int


class Boxes(Struct, frozen=True, forbid_unknown_fields=True):
    """Rectangles of the image to classify, each with an answer of its own.

    xywh: x, y, width and height of each, from the upper left of the upright image. unit: of these numbers, pixels or
    shares (0 to 1) of the image's sides. A box that is not four numbers fails alone; null stands for NaN or infinity.
    """

    unit: Literal["pixels", "shares"]
    xywh: Annotated[list[list[float | None]], Meta(min_length=1, max_length=64)]


class Classify(Struct, tag="classify", tag_field="type", frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Requests a classification of the image in frame two. The daemon's configuration decides what it leaves out.

    `family` names the list of classes, `policy` the rule that chooses models, `model` a single model instead.
    `on_doubt` says whether to use or refuse an answer if no model is expected to be right. `on_device` excludes the
    edge server. `wrong_at_most` is the error rate that the calibration must guarantee for answers not in doubt.
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
        """Raise BadRequestError for NaN and infinity: JSON would send them as null, which means no limit."""
        for name in ("deadline_ms", "least_accuracy", "most_energy_mj", "wrong_at_most"):
            if (value := getattr(self, name)) is not None and not math.isfinite(value):
                raise BadRequestError(f'"{name}" is {value}: give a number, or leave it out')


class Status(Struct, tag="status", tag_field="type", frozen=True, forbid_unknown_fields=True):
    """Requests a StatusReply: the daemon's state."""

    v: int
    id: Id


class Reload(Struct, tag="reload", tag_field="type", frozen=True, forbid_unknown_fields=True):
    """Asks the daemon to read its configuration, models and calibrations again; only administrators may send it."""

    v: int
    id: Id


Request = Classify | Status | Reload


class Ranked(Struct, frozen=True):
    """One of the most probable classes: its name, identifier (WordNet's, if it has one), and calibrated probability."""

    label: str
    wnid: str
    probability: float


class Ran(Struct, frozen=True):
    """One run of a model for the request. `because`: why the policy ran it. `latency_ms`: of the whole batch.

    `batch` is the number of images that the run took together. `device_ms` is the accelerator's part of the latency,
    null if not measured. The bytes are null unless the run was on the edge server.
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
    """Milliseconds of each stage of a request; a skipped stage is null. `choice`: of the policy's computation.

    `inference` has an entry for each model run, in order. `waiting` is the total wait for models, `input` the total
    time to make their inputs from the image.
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
    """How the models were chosen, for a request with `explain`.

    `features` are numbers computed from the image, null if the policy uses none; `distance` is the mean distance of the
    calibration's nearest images. `steps` are the policy's reasons in order, `policy_because` why this policy decided.
    `objective` is the cost that the calibration minimises; `budget` is given whether or not it had an effect.
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
    """The label of the image (`wnid`: its identifier), how it was found, and its cost.

    `in_doubt`: no model was expected to be right. `cut_short`: the deadline ended the policy early. `ran`: the model
    runs. `energy_mj`: calibrated energy of these runs above idle; `energy_reason`: why it is null. `wrong_at_most`: the
    error rate that the calibration guarantees for answers not in doubt, null without one. `operating_point`: the policy
    selected by load, deadline or power budget, null if none of them applies.
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
    """Why there is no answer. `code`: stable name of the error. `retry`: the same request may succeed later."""

    v: int
    id: str | None
    code: str
    retry: bool
    message: str


class Answers(Struct, tag="answers", tag_field="type", frozen=True):
    """The reply to a request with boxes: for each box, in order, its answer or why there is none."""

    v: int
    id: str
    answers: list[Answer | Failure]


class Reloaded(Struct, tag="reloaded", tag_field="type", frozen=True):
    """The reply to Reload after the daemon has read its files again. `changed`: the differences, for people."""

    v: int
    id: str
    changed: list[str]


Reply = Answer | Answers | Failure | StatusReply | Reloaded
