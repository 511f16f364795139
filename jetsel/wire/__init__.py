"""The messages on the socket: one class each, which defines its JSON; docs/protocol.md describes every field.

The parts of a status reply are in the modules `status`, `counts` and `power`.
"""

from jetsel.wire.codec import MAX_JSON_BYTES, PROTOCOL_VERSION, decode_reply, decode_request, encode, failure, read_id
from jetsel.wire.messages import (
    Answer,
    Answers,
    Boxes,
    Classify,
    Explanation,
    Failure,
    Pixels,
    Ran,
    Ranked,
    Reload,
    Reloaded,
    Reply,
    Request,
    Stages,
    Status,
)
from jetsel.wire.status import StatusReply

__all__ = [
    "MAX_JSON_BYTES",
    "PROTOCOL_VERSION",
    "Answer",
    "Answers",
    "Boxes",
    "Classify",
    "Explanation",
    "Failure",
    "Pixels",
    "Ran",
    "Ranked",
    "Reload",
    "Reloaded",
    "Reply",
    "Request",
    "Stages",
    "Status",
    "StatusReply",
    "decode_reply",
    "decode_request",
    "encode",
    "failure",
    "read_id",
]
