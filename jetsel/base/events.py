"""Structured log lines: each names its event, with fields, and carries the ids of the requests that it is about.

Every line that jetsel logs names its event; docs/monitoring.md lists them, and a test compares them with the code:

    log = logging.getLogger("jetsel.models")
    log.error("model %s is unavailable: %s", name, error, extra=event("model-unavailable", model=name, code=error.code))

The handler (jetsel/base/logs.py) escapes texts and fields, which may come from clients. If a line about requests is
logged by another thread than theirs, pass it `current_request_ids()` and log them as `event(..., request_id=ids)`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

Result = TypeVar("Result")

Ids = tuple[str, ...] | Callable[[], tuple[str, ...]]  # ids of requests; a function is called only if a line is logged

_current_ids: ContextVar[Ids] = ContextVar("request_ids", default=())  # see `run_about`


def event(name: str, /, **fields: object) -> dict[str, object]:
    """Return the `extra` of a log call: the event's name, such as "model-unavailable", and its fields.

    Field names are lower-case words that end in their unit (`wait_ms`). Fields with the value None are left out; a
    tuple or list gives several values of one field.
    """
    return {"event": name, "fields": fields}


def harmless(text: str) -> str:
    """Return a text on one line for logs and errors, with characters escaped that str.isprintable excludes."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def current_request_ids() -> tuple[str, ...]:
    """Return the ids of the requests that this thread works on, as `run_about` has set them; empty outside of it."""
    ids = _current_ids.get()
    return ids() if callable(ids) else ids


def run_about(ids: Ids, work: Callable[..., Result], *arguments: object) -> Result:
    """Run work(*arguments) and return its result; lines that this thread logs meanwhile carry the requests' ids."""
    token = _current_ids.set(ids)
    try:
        return work(*arguments)
    finally:
        _current_ids.reset(token)
