"""One log line, taken apart: its words, its event and fields, the requests that it is about, where it came from."""

from __future__ import annotations

import logging
import traceback
from typing import NamedTuple

NO_EVENT = "library"  # of lines that a library logs


class Entry(NamedTuple):
    """A record as both outputs need it. `words` and `trace` are harmless; the values of `fields` are as they came."""

    record: logging.LogRecord
    words: str
    trace: list[str]  # of an exception, line by line
    event: str
    fields: dict[str, tuple[str, ...]]


def entry_of(record: logging.LogRecord) -> Entry:
    """Take a record apart; never raises, whatever was logged."""
    told = {"request_id": getattr(record, "about", ()), **(getattr(record, "fields", None) or {})}
    fields = {name: values for name, value in told.items() if (values := _values(value))}
    trace: list[str] = []
    if record.exc_info is not None and record.exc_info[0] is not None:
        lines = "".join(traceback.format_exception(*record.exc_info)).splitlines()
        trace = [harmless(line) for line in lines]
    return Entry(record, harmless(words_of(record)), trace, str(getattr(record, "event", NO_EVENT)), fields)


def harmless(text: str) -> str:
    """The text on one line, with what would move a cursor, end a line or turn writing around spelled out.

    Unicode's controls, format characters, surrogates and separators but the space: all that str.isprintable excludes.
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def words_of(record: logging.LogRecord) -> str:
    """What the line says, as it came."""
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):  # the call has a defect: what it was to say is better than nothing
        return f"{record.msg} {record.args!r}"


def _values(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, (tuple, list)):
        return tuple(str(each) for each in value if each is not None)
    if isinstance(value, float):
        return (f"{value:.6g}",)
    return (str(value),)
