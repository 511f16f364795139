"""From a reply on the wire to what the caller gets: a typed result, or the error that the daemon meant."""

from __future__ import annotations

from functools import lru_cache
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
    return _class(failure.code, failure.retry)(failure.message)


@lru_cache(maxsize=64)  # the codes of a newer daemon are few; a hostile one may not fill our memory
def _class(code: str, retry: bool) -> type[JetselError]:
    known = BY_CODE.get(code, JetselError)
    if known.code == code and known.retry == retry:
        return known
    return type(known.__name__, (known,), {"code": code, "retry": retry, "__doc__": known.__doc__})
