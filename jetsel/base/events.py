"""What a log line carries besides its words: the event's stable name, its fields, and the requests it is about.

Every line that jetsel logs names its event; docs/monitoring.md lists them, and a test compares them with the code:

    log = logging.getLogger("jetsel.models")
    log.error("model %s is unavailable: %s", name, error, extra=event("model-unavailable", model=name, code=error.code))

Words and fields may hold what a client sent: the handler (jetsel/base/logs.py) makes them harmless. `run_about(ids,
work)` puts the ids of requests on each line that the same thread logs meanwhile. If another thread logs for that
work, take `requests()` along and give them as `event(..., request_id=ids)`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

Result = TypeVar("Result")

Ids = tuple[str, ...] | Callable[[], tuple[str, ...]]  # a function is only called if a line is logged

_about: ContextVar[Ids] = ContextVar("requests", default=())


def event(name: str, /, **fields: object) -> dict[str, object]:
    """The `extra` of a log call: the event's name, as in "model-unavailable", and what is known of it by name.

    Fields are lower-case words with their unit in the name (`wait_ms`). One that is None is unknown and left out; a
    tuple or list is several values of one field.
    """
    return {"event": name, "fields": fields}


def harmless(text: str) -> str:
    """Return the text on one line, with controls, line ends and all else that str.isprintable excludes spelled out."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def requests() -> tuple[str, ...]:
    """The ids of the requests that this thread works on; empty outside of any."""
    ids = _about.get()
    return ids() if callable(ids) else ids


def run_about(ids: Ids, work: Callable[..., Result], *arguments: object) -> Result:
    """Return what the work returns; what this thread logs meanwhile is about these requests."""
    token = _about.set(ids)
    try:
        return work(*arguments)
    finally:
        _about.reset(token)
