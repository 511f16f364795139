"""Frame one of a request and of a reply: what any peer of the socket may send."""

from jetsel.base.errors import JetselError
from jetsel.wire import decode_reply, decode_request, encode, failure, read_id
from tests.fuzz.mutations import json_mutation as mutation

MAX_BYTES = 4096
WORDS = (b'"type"', b'"classify"', b'"status"', b'"reload"', b'"v"', b'"id"', b'"pixels"', b'"nv12"', b'"deadline_ms"')

__all__ = ["MAX_BYTES", "WORDS", "mutation", "run"]


def run(data: bytes) -> None:
    """A request is read, and read again as it is written; one that is refused is answered, under its id if it can."""
    try:
        request = decode_request(data)
    except JetselError as error:
        decode_reply(encode(failure(read_id(data), error)))
    else:
        assert decode_request(encode(request)) == request
        assert read_id(data) == request.id
    reply = decode_reply(data)
    decode_reply(encode(reply))
