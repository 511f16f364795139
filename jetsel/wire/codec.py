"""Encodes and decodes a message's JSON, which is frame one; frame two holds the image of a request."""

from __future__ import annotations

import reprlib
from typing import Any

import msgspec
from msgspec import Struct

from jetsel.base.errors import BadRequestError, JetselError, UnknownKindError, UnsupportedVersionError
from jetsel.wire.messages import Failure, Reply, Request

PROTOCOL_VERSION = 1
MAX_JSON_BYTES = 65_536
"""A longer frame one is rejected unread; the largest valid request, with 64 boxes, has under 8 KB."""


class MessageHeader(Struct, frozen=True):
    """The fields that every message has, of any type: read alone from an invalid request, so that its error fits."""

    v: Any = None
    type: Any = None
    id: Any = None


_header = msgspec.json.Decoder(MessageHeader)
_request: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_KINDS = ("classify", "status", "reload")  # values of `type`
_reply: msgspec.json.Decoder[Reply] = msgspec.json.Decoder(Reply)
_encoder = msgspec.json.Encoder()
_QUOTED = 150  # characters of each end of a long error
_UNREADABLE = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)  # msgspec passes the last two through


def encode(message: Request | Reply) -> bytes:
    """Return a message as JSON, which is frame one."""
    return _encoder.encode(message)


def read_id(frame: bytes) -> str | None:
    """Return the id of a request, which may be invalid otherwise, for the reply; None if it is unreadable."""
    if len(frame) > MAX_JSON_BYTES:
        return None
    try:
        identifier = _header.decode(frame).id
    except _UNREADABLE:
        return None
    return identifier if isinstance(identifier, str) and len(identifier) <= 128 else None


def decode_request(frame: bytes) -> Request:
    """Return the request in frame one; raises BadRequestError, UnsupportedVersionError or UnknownKindError."""
    if len(frame) > MAX_JSON_BYTES:
        raise BadRequestError(
            f"frame one is longer than the {MAX_JSON_BYTES} bytes that are read: put the image in frame two"
        )
    try:
        request = _request.decode(frame)
    except _UNREADABLE as error:
        raise _error_in_request(frame, error) from None
    if request.v != PROTOCOL_VERSION:
        raise _unsupported_version(request.v)
    return request


def _error_in_request(frame: bytes, error: Exception) -> JetselError:
    """Return the error for a request that cannot be decoded: first its version is compared, then its type."""
    try:
        header = _header.decode(frame)
    except _UNREADABLE as worse:
        return BadRequestError(f"frame one is not a JSON object: {_shortened(worse)}")
    if header.v != PROTOCOL_VERSION or isinstance(header.v, bool):
        return _unsupported_version(header.v)
    if header.type not in _KINDS:
        return UnknownKindError(f'"type" is {reprlib.repr(header.type)}: use one of {", ".join(_KINDS)}')
    return BadRequestError(f"the {header.type} request is wrong: {_shortened(error)}")


def _unsupported_version(version: Any) -> UnsupportedVersionError:
    """Return the error for a request of another protocol version."""
    return UnsupportedVersionError(
        f'this daemon speaks version {PROTOCOL_VERSION}: send "v": {PROTOCOL_VERSION}, not {reprlib.repr(version)}'
    )


def decode_reply(frame: bytes) -> Reply:
    """Return the reply in frame one. Raises BadRequestError if the peer does not speak the protocol."""
    try:
        return _reply.decode(frame)
    except _UNREADABLE as error:
        raise BadRequestError(
            f"the peer's reply is not of protocol version {PROTOCOL_VERSION}: {_shortened(error)}"
        ) from None


def failure(request_id: str | None, error: JetselError) -> Failure:
    """Return the reply that reports this error to the client; request_id: None if it could not be read."""
    return Failure(PROTOCOL_VERSION, request_id, error.code, error.retry, str(error))


def _shortened(error: Exception) -> str:
    """Return msgspec's error text; a long one is cut in the middle, since its end names the field."""
    text = str(error)
    return text if len(text) <= 2 * _QUOTED else f"{text[:_QUOTED]} ... {text[-_QUOTED:]}"
