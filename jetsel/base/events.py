"""The structured part of a log line: the event's stable name, its fields, and the ids of requests.

Every line that jetsel logs names its event; docs/monitoring.md lists them, and a test compares them with the code:

    log = logging.getLogger("jetsel.models")
    log.error("model %s is unavailable: %s", name, error, extra=event("model-unavailable", model=name, code=error.code))

The handler (jetsel/base/logs.py) escapes words and fields, which may hold text of clients. `run_about(ids, work)` adds
the ids of requests to each line that the same thread logs meanwhile. If another thread logs for that work, pass it
`current_request_ids()` and log them as `event(..., request_id=ids)`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

Result = TypeVar("Result")

Ids = tuple[str, ...] | Callable[[], tuple[str, ...]]  # a function is called only if a line is logged

_current_ids: ContextVar[Ids] = ContextVar("request_ids", default=())  # of the requests that a thread works on


def event(name: str, /, **fields: object) -> dict[str, object]:
    """Return the `extra` of a log call: the event's name, such as "model-unavailable", and its fields.

    Field names are lower-case words that end in their unit (`wait_ms`). Fields with the value None are left out; a
    tuple or list gives several values of one field.
    """
    return {"event": name, "fields": fields}


def harmless(text: str) -> str:
    """Return the text on one line, with control characters and others that str.isprintable excludes escaped."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def current_request_ids() -> tuple[str, ...]:
    """Return the ids of the requests that this thread works on; empty if there are none."""
    ids = _current_ids.get()
    return ids() if callable(ids) else ids


def run_about(ids: Ids, work: Callable[..., Result], *arguments: object) -> Result:
    """Return the result of work(*arguments); lines that this thread logs meanwhile carry the ids."""
    token = _current_ids.set(ids)
    try:
        return work(*arguments)
    finally:
        _current_ids.reset(token)
