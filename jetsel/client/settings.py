"""Shared by both clients: settings, the encoding of requests, and the conversion of replies to results or errors."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal, TypedDict, TypeVar

import msgspec

from jetsel.base.endpoint import find, why_absent
from jetsel.base.errors import BY_CODE, BadRequestError, DeadlineError, JetselError, NoDaemonError, NoReplyError
from jetsel.client.link import Attempts, CrowdedError, DaemonConnection
from jetsel.client.photograph import Channels
from jetsel.wire import (
    MAX_JSON_BYTES,
    PROTOCOL_VERSION,
    Answer,
    Answers,
    Boxes,
    Classify,
    Failure,
    Pixels,
    Reloaded,
    Reply,
    Request,
    StatusReply,
    encode,
)

R = TypeVar("R", Answer, Answers, StatusReply, Reloaded)

BoxesXywh = Sequence[Sequence[float]]
"""x, y, width and height of each box; an array of (n, 4) is valid, too."""


class RequestOptions(TypedDict, total=False):
    """Options of a request; the daemon's configuration decides missing ones."""

    family: str | None
    top_k: int
    policy: str | None
    model: str | None
    deadline_ms: float | None
    on_doubt: Literal["use", "refuse"] | None
    explain: bool
    on_device: bool
    least_accuracy: float | None
    most_energy_mj: float | None
    wrong_at_most: float | None


class Options(RequestOptions, total=False):
    """Options of `classify` besides the image and its boxes."""

    channels: Channels
    timeout_ms: float | None


@dataclass(eq=False)
class ClientSettings:
    """Settings of a client, which connects at the first call.

    endpoint: ipc:///path; None for the first of $JETSEL_ENDPOINT, the user's socket, /run/jetsel/jetsel.sock.
    timeout_ms: default for a whole call, including retries and pauses. max_image_mb: limit of the daemon
    (server.max_image_mb); larger images are rejected before sending. retry: whether to repeat a request within the
    timeout after an error that may pass: the daemon is busy, loads or restarts.
    """

    endpoint: str | None = None
    _: KW_ONLY
    timeout_ms: float = 30_000.0
    max_image_mb: float = 16.0
    retry: bool = True
    _prefix: str = field(init=False, repr=False, default_factory=lambda: f"{os.getpid()}-{os.urandom(3).hex()}")
    _count: Iterator[int] = field(init=False, repr=False, default_factory=lambda: itertools.count(1))

    def _attempts(self, request: Request, timeout_ms: float | None) -> Attempts:
        deadline_ms = request.deadline_ms if isinstance(request, Classify) else None
        return Attempts(self.timeout_ms if timeout_ms is None else timeout_ms, deadline_ms)

    def _encode(self, request: Request, attempts: Attempts) -> tuple[str, bytes]:
        """Return a new request id, so that late replies to earlier attempts are dropped, and the request as JSON.

        Raises DeadlineError if the deadline has passed, BadRequestError if the JSON is too long for the daemon.
        """
        request_id = f"{self._prefix}-{next(self._count)}"
        if isinstance(request, Classify) and request.deadline_ms is not None and request.deadline_ms > 0:
            left_ms = attempts.deadline_left_ms
            if left_ms is not None and left_ms <= 0:
                raise DeadlineError(f"the deadline of {request.deadline_ms:g} ms passed before the image could be sent")
            request = msgspec.structs.replace(request, deadline_ms=left_ms)
        message = encode(msgspec.structs.replace(request, id=request_id))
        if len(message) > MAX_JSON_BYTES:
            raise BadRequestError(
                f"the request has {len(message)} bytes without its image; the limit is {MAX_JSON_BYTES}: shorten it"
            )
        return request_id, message

    def _connect(self) -> DaemonConnection:
        return DaemonConnection(find(self.endpoint))


def reply_as(reply: Reply, expects: type[R]) -> R:
    """Return the reply if it has this type. Raises the error of a Failure, BadRequestError for any other reply."""
    if isinstance(reply, expects):
        return reply
    if isinstance(reply, Failure):
        raise error_of(reply)
    raise BadRequestError(f"the peer replied to {expects.__name__} with {type(reply).__name__}: is it a jetsel daemon?")


def classify_request(
    pixels: Pixels | None, boxes: BoxesXywh | None, unit: Literal["pixels", "shares"], options: RequestOptions
) -> Classify:
    """Return the request for an image, with an empty id. unit: of the boxes. Raises TypeError for unknown options."""
    wire_boxes = None if boxes is None else Boxes(unit, [[float(value) for value in box] for box in boxes])
    return Classify(PROTOCOL_VERSION, "", pixels=pixels, boxes=wire_boxes, **options)


def box_results(reply: Answers) -> list[Answer | JetselError]:
    """Return the answer, or the error that is not raised, for each box."""
    return [answer if isinstance(answer, Answer) else error_of(answer) for answer in reply.answers]


def error_of(failure: Failure) -> JetselError:
    """Return the daemon's failure as an exception: of its code's class, or a JetselError if the code is unknown."""
    error = BY_CODE.get(failure.code, JetselError)(failure.message)
    error.code, error.retry = failure.code, failure.retry
    return error


def error_of_ended_connection(link: DaemonConnection) -> NoDaemonError | NoReplyError:
    """Return the error for a connection that ended: why it was refused, or NoReplyError if it was lost later."""
    if link.end == "refused":
        return why_absent(link.endpoint) or CrowdedError(
            f"the daemon at {link.endpoint} did not accept this client: too many clients connect at once; see the "
            "daemon's log"
        )
    return NoReplyError(
        f"the daemon at {link.endpoint} closed the connection before it replied: "
        "it was stopped, or the message exceeds its limit"
    )


def timeout_error(link: DaemonConnection, attempts: Attempts) -> NoReplyError:
    """Return the error for a call whose timeout is over."""
    return NoReplyError(
        f"the daemon at {link.endpoint} did not answer within {attempts.timeout_ms:g} ms: "
        "see `jetsel status`, or allow more time"
    )
