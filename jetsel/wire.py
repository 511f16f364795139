"""The messages on the socket: one class each, their JSON derived from it; docs/protocol.md describes every field."""

from __future__ import annotations

import reprlib
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from jetsel.errors import BadRequestError, JetselError, UnknownKindError, UnsupportedVersionError

PROTOCOL_VERSION = 1
MAX_JSON_BYTES = 65_536
"""Past this, frame one is refused unread: the largest honest request is under 2 KB."""

Criterion = Literal["top1", "top5"]
Id = Annotated[str, Meta(min_length=1, max_length=128)]
Name = Annotated[str, Meta(min_length=1, max_length=128)]


class Pixels(Struct, frozen=True, forbid_unknown_fields=True):
    """How raw pixels lie in frame two, as cameras have them; `stride` is the bytes from one row to the next."""

    format: Literal["bgr8", "rgb8", "gray8", "nv12"]
    width: int
    height: int
    stride: int


class Header(Struct, frozen=True):
    """What is read of a message before anything else, so that even a foreign one is answered under its id."""

    v: Any = None
    type: Any = None
    id: Any = None


class Classify(Struct, tag="classify", tag_field="type", frozen=True, forbid_unknown_fields=True):
    """Asks what the photograph in frame two shows. What is left out is decided by the daemon's configuration."""

    v: int
    id: Id
    family: Name | None = None
    top_k: Annotated[int, Meta(ge=1, le=1000)] = 5
    policy: Name | None = None
    model: Name | None = None
    deadline_ms: Annotated[float, Meta(gt=0, le=3_600_000)] | None = None
    criterion: Criterion = "top1"
    on_doubt: Literal["use", "refuse"] | None = None
    explain: bool = False
    pixels: Pixels | None = None


class Status(Struct, tag="status", tag_field="type", frozen=True, forbid_unknown_fields=True):
    """Asks what the daemon serves and how it fares."""

    v: int
    id: Id


class Reload(Struct, tag="reload", tag_field="type", frozen=True, forbid_unknown_fields=True):
    """Asks the daemon to read its configuration, models and calibrations again; for administrators on ipc alone."""

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

    `device_ms` is what the device itself took of it, null where that is not measured.
    """

    model: str
    because: str
    confidence: float
    latency_ms: float
    batch: int
    device_ms: float | None = None


class Stages(Struct, frozen=True):
    """Where the time went. `inference` has one entry for each run, in order; stages that did not happen are null."""

    queue: float
    decode: float
    features: float | None
    choice: float
    inference: list[float]
    total: float


class Explanation(Struct, frozen=True):
    """More about the choice: the features it read (null where it read none) and how the policy argued."""

    features: dict[str, float] | None
    distance: float | None
    steps: list[str]
    decoded_width_px: int
    decoded_height_px: int


class Answer(Struct, tag="answer", tag_field="type", frozen=True):
    """What the photograph shows, who said so, and what it took."""

    v: int
    id: str
    family: str
    label: str
    wnid: str
    probability: float
    top_k: list[Ranked]
    model: str
    policy: str
    criterion: Criterion
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


class Failure(Struct, tag="failure", tag_field="type", frozen=True):
    """Why there is no answer. `code` is stable; `retry` says whether the same request may succeed later."""

    v: int
    id: str | None
    code: str
    retry: bool
    message: str


class ModelStatus(Struct, frozen=True):
    """One model as the daemon sees it: `state` is loading, ready or unavailable, the latter with its reason."""

    name: str
    version: str
    state: str
    reason: str | None
    runs: int
    p50_ms: float | None
    p95_ms: float | None
    backend: str


class FamilyStatus(Struct, frozen=True):
    """One family: its models cheapest first, the policies that a request may name, and what decides by default."""

    name: str
    classes: int
    models: list[ModelStatus]
    policies: list[str]
    default_policy: dict[str, str]
    because: str
    fallback: str | None
    calibration: str | None


class StatusReply(Struct, tag="status", tag_field="type", frozen=True):
    """How the daemon fares. `state` is loading, ready or stopping; `requests` counts by outcome or error code.

    `progress` says how far the loading is, as in "building 2 of 5"; null once it is done.
    """

    v: int
    id: str
    state: str
    version: str
    pid: int
    uptime_s: float
    endpoints: list[str]
    default_family: str | None
    families: list[FamilyStatus]
    broken: list[str]
    requests: dict[str, int]
    in_queue: int
    queued_bytes: int
    lost_replies: int
    resident_mb: float | None
    progress: str | None = None


class Reloaded(Struct, tag="reloaded", tag_field="type", frozen=True):
    """The daemon serves what its files say now; `changed` names what is different."""

    v: int
    id: str
    changed: list[str]


Reply = Answer | Failure | StatusReply | Reloaded

_header = msgspec.json.Decoder(Header)
_request: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_KINDS = ("classify", "status", "reload")
_reply: msgspec.json.Decoder[Reply] = msgspec.json.Decoder(Reply)
_encoder = msgspec.json.Encoder()
_QUOTED = 150
_UNREADABLE = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)  # msgspec raises the last two as they are


def encode(message: Request | Reply) -> bytes:
    """Return the message as frame one carries it."""
    return _encoder.encode(message)


def read_id(frame: bytes) -> str | None:
    """Return the request's id, or None where it cannot be read: a reply carries it even when all else is wrong."""
    if len(frame) > MAX_JSON_BYTES:
        return None
    try:
        found = _header.decode(frame).id
    except _UNREADABLE:
        return None
    return found if isinstance(found, str) and len(found) <= 128 else None


def decode_request(frame: bytes) -> Request:
    """Read frame one of a request.

    Raises BadRequestError, UnsupportedVersionError or UnknownKindError, each with the repair.
    """
    if len(frame) > MAX_JSON_BYTES:
        raise BadRequestError(
            f"frame one has {len(frame)} bytes; at most {MAX_JSON_BYTES} are read: put the image in frame two"
        )
    try:
        request = _request.decode(frame)
    except _UNREADABLE as error:
        raise _what_is_wrong(frame, error) from None
    if request.v != PROTOCOL_VERSION:
        raise _unsupported(request.v)
    return request


def _what_is_wrong(frame: bytes, error: Exception) -> JetselError:
    """Read the tolerant header of a request that could not be read: another version is named before anything else."""
    try:
        header = _header.decode(frame)
    except _UNREADABLE as worse:
        return BadRequestError(f"frame one is not a JSON object: {_brief(worse)}")
    if header.v != PROTOCOL_VERSION or isinstance(header.v, bool):
        return _unsupported(header.v)
    if header.type not in _KINDS:
        return UnknownKindError(f'"type" is {reprlib.repr(header.type)}: use one of {", ".join(_KINDS)}')
    return BadRequestError(f"the {header.type} request is wrong: {_brief(error)}")


def _unsupported(version: Any) -> UnsupportedVersionError:
    return UnsupportedVersionError(
        f'this daemon speaks version {PROTOCOL_VERSION}: send "v": {PROTOCOL_VERSION}, not {reprlib.repr(version)}'
    )


def decode_reply(frame: bytes) -> Reply:
    """Read frame one of a reply; raises BadRequestError where the peer does not speak the protocol."""
    try:
        return _reply.decode(frame)
    except _UNREADABLE as error:
        raise BadRequestError(
            f"the peer's reply is not of protocol version {PROTOCOL_VERSION}: {_brief(error)}"
        ) from None


def failure(request_id: str | None, error: JetselError) -> Failure:
    """Return the reply that carries this error."""
    return Failure(PROTOCOL_VERSION, request_id, error.code, error.retry, str(error))


def _brief(error: Exception) -> str:
    """What was wrong; a long value that it quotes is cut, and its end kept, which says where."""
    text = str(error)
    return text if len(text) <= 2 * _QUOTED else f"{text[:_QUOTED]} ... {text[-_QUOTED:]}"
