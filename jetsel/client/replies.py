"""From a reply on the wire to what the caller gets: a typed result, or the error that the daemon meant."""

from __future__ import annotations

from typing import TypeVar

from jetsel.errors import BY_CODE, BadRequestError, JetselError
from jetsel.wire import Answer, Failure, Reloaded, Reply, StatusReply

R = TypeVar("R", Answer, StatusReply, Reloaded)


def result(reply: Reply, kind: type[R]) -> R:
    """Return the reply if it is of the kind asked for; raises what a Failure carries."""
    if isinstance(reply, kind):
        return reply
    if isinstance(reply, Failure):
        raise error_of(reply)
    raise BadRequestError(f"the peer answered {kind.__name__} with {type(reply).__name__}: is it a jetsel daemon?")


def error_of(failure: Failure) -> JetselError:
    """Return the daemon's error in its own class; a code that this version does not know keeps its code and `retry`."""
    error = BY_CODE.get(failure.code, JetselError)(failure.message)
    error.code, error.retry = failure.code, failure.retry
    return error
