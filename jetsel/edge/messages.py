"""What the daemon and its edge child say to each other: MessagePack with its length before it, over one socket pair."""

from __future__ import annotations

import struct
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

LENGTH = struct.Struct("<I")
REFRESH_S = 20.0
FEWEST = 4  # times of an edge that make evidence
AFTER_S = 1.0  # a late answer is read for so long: it tells how long the path takes
MOST_BYTES = 256 * 2**20  # of one message: the largest photograph that the daemon takes, and some


class Remote(Struct, frozen=True):
    """One model of the edge, as the child asks for it.

    name: there. input: "encoded", the photograph's file as one BYTES element, or "tensor", float32 (1, 3, height,
    width) as the model's specification says. output: "ranked", entries `probability:wnid:label` (Triton's
    classification extension), or "probabilities" or "logits", float32 (1, classes). input_name, output_name: None for
    the only one. wnids: the classes in the order of the family; places: of each number of the output, the class that
    it speaks of, None for the same order. probe: a photograph of a usual size to try it with, and its shape if it is
    a tensor; small_probe: one to see with, again and again, whether it is as fast as it was.
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
"""What to do about the status of an edge server that should say that it is ready: waiting does not help."""


class EdgeStart(Struct, tag=True, frozen=True):
    """The first message: where the edges are, and their models by the names that they have here.

    refresh_s: after so long a model that nobody asked is tried again; it may be slower or faster by now. Of several
    edges each is sent the usual photograph for the first model as often, so that they are compared on equal terms.
    """

    urls: list[str]
    token: str | None
    models: dict[str, Remote]
    refresh_s: float = REFRESH_S


class Ask(Struct, tag=True, frozen=True):
    """Asks a model about a photograph. shape: of a tensor. patience_ms: how long the answer is of use.

    edge: which one is asked, by its place in Start.urls.
    """

    number: int
    edge: int
    model: str
    payload: bytes
    shape: list[int] | None
    patience_ms: float


class Cancel(Struct, tag=True, frozen=True):
    """The answer is of no use any more; it is still read, which keeps the connection and tells how long it took."""

    number: int


class AskResult(Struct, tag=True, frozen=True):
    """What came of an Ask.

    values: float32 (classes,) as bytes, None if `error` says why there are none. total_ms: from the first byte out
    to the last byte in; server_ms: what the server says that it worked, None if it does not.
    """

    number: int
    values: bytes | None
    error: str | None
    sent_bytes: int
    received_bytes: int
    total_ms: float
    server_ms: float | None


class State(Struct, tag=True, frozen=True):
    """Whether an edge can be asked now. edge: which, by its place in Start.urls. reason: why not, None if it can.

    refused: models that cannot, and why. probed: what came of trying the others, by name. look_ms: what asking whether
    it is ready took, None if it is not. is_new: it was away before, and may be elsewhere now.
    """

    edge: int
    reason: str | None
    refused: dict[str, str] = {}
    probed: list[tuple[str, AskResult]] = []
    look_ms: float | None = None
    is_new: bool = False


ToChild: TypeAlias = EdgeStart | Ask | Cancel
FromChild: TypeAlias = State | AskResult

_encoder = msgspec.msgpack.Encoder()


def frame(message: ToChild | FromChild) -> bytes:
    """Return the message as it goes over the socket."""
    body = _encoder.encode(message)
    return LENGTH.pack(len(body)) + body
