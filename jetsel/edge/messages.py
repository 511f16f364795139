"""Messages between the daemon and its edge child: MessagePack after its length, over a socket pair."""

from __future__ import annotations

import struct
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

LENGTH = struct.Struct("<I")
REFRESH_S = 20.0
FEWEST_TIMES = 4  # measured times that an estimate needs
LATE_S = 1.0  # a late answer is still read for this long, because its time shows the network's latency


class Remote(Struct, frozen=True):
    """One model of the edge server: how to send it an image and how to read its answer.

    name: its name on the server. input: "encoded", the image file as one BYTES element, or "tensor", float32 (1, 3,
    height, width) as the model's specification says. output: "ranked", entries `probability:wnid:label` (Triton's
    classification extension), or "probabilities" or "logits", float32 (1, classes). input_name, output_name: None if
    the model has only one. wnids: identifiers of the family's classes, in order. places: class index of each output
    number, None if the order is the same. probe: an image of usual size for tests; probe_shape: its shape if it is a
    tensor. small_probe: an image for repeated checks.
    """

    name: str
    input: Literal["encoded", "tensor"]
    output: Literal["ranked", "probabilities", "logits"]
    input_name: str | None
    output_name: str | None
    wnids: list[str]
    places: list[int] | None
    probe: bytes
    small_probe: bytes
    probe_shape: list[int] | None = None


REPAIRS = {
    401: ": set edge.token_file to a file with its token",
    403: ": set edge.token_file to a file with its token",
    404: ": it has no Open Inference Protocol at this address; set edge.url to the base address of the server",
}
"""HTTP status of a server that is not ready -> repair, for the states that do not end by themselves."""


class EdgeStart(Struct, tag=True, frozen=True):
    """First message to the child: the edge servers, and their models by local names. token: for HTTP, None: none.

    refresh_s: an idle model is probed again after this time, because its speed may have changed. Several servers are
    compared as often, by an image of usual size to the first model.
    """

    urls: list[str]
    token: str | None
    models: dict[str, Remote]
    refresh_s: float = REFRESH_S


class Ask(Struct, tag=True, frozen=True):
    """Requests a prediction. edge: index of the server in EdgeStart.urls. model: its local name.

    payload, shape: see EdgePayload. patience_ms: how long the answer is useful.
    """

    number: int
    edge: int
    model: str
    payload: bytes
    shape: list[int] | None
    patience_ms: float


class Cancel(Struct, tag=True, frozen=True):
    """Cancels the Ask with this number. Its answer is still read, which keeps the connection and measures its time."""

    number: int


class AskResult(Struct, tag=True, frozen=True):
    """The result of the Ask with this number, or of a probe (-1).

    values: float32 (classes,) as bytes, None if `error` says why it failed. total_ms: from the first byte sent
    to the last byte received. server_ms: the server's own time, None if it does not report one.
    """

    number: int
    values: bytes | None
    error: str | None
    sent_bytes: int
    received_bytes: int
    total_ms: float
    server_ms: float | None


class State(Struct, tag=True, frozen=True):
    """State of an edge server. edge: its index in EdgeStart.urls. reason: why it is unavailable, None if available.

    refused: unusable model -> reason. probed: (model, result) of each probe. check_ms: round trip of a readiness
    request, None without one. is_new: True if it was unavailable before, and may be another machine now.
    """

    edge: int
    reason: str | None
    refused: dict[str, str] = {}
    probed: list[tuple[str, AskResult]] = []
    check_ms: float | None = None
    is_new: bool = False


ToChild: TypeAlias = EdgeStart | Ask | Cancel
FromChild: TypeAlias = State | AskResult


def frame(message: ToChild | FromChild) -> bytes:
    """Return the message as bytes for the socket."""
    body = msgspec.msgpack.encode(message)
    return LENGTH.pack(len(body)) + body
