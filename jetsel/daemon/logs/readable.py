"""Log lines for people: time in UTC, level, words, then the event and those of its fields that the words lack."""

from __future__ import annotations

import json
import logging
import time

from jetsel.daemon.logs.entry import Entry, harmless

DIM, PLAIN = "\x1b[2m", "\x1b[0m"
COLOURS = {logging.WARNING: "\x1b[33m", logging.ERROR: "\x1b[31m", logging.CRITICAL: "\x1b[31;1m"}

LONGEST_VALUE = 200  # characters of a field that are shown
MARK = "[event="  # stands in a line once, and what follows is ours: see `_told`
TRACE = "    | "  # in front of a traceback's lines: none can pass for a line of the log's own

_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/+@%,")


def readable(entry: Entry, *, is_coloured: bool = False) -> str:
    """Return one line, and one more for each of a traceback's, without the last line's end."""
    record = entry.record
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    level = f"{record.levelname.lower():<8}"
    what = _fields(entry)
    if is_coloured:
        level, what = f"{COLOURS.get(record.levelno, '')}{level}{PLAIN}", f"{DIM}{what}{PLAIN}"
    line = f"{at}.{int(record.msecs):03d}Z {level} {_told(entry.words)} {what}"
    return "\n".join([line, *(f"{TRACE}{more}" for more in entry.trace)])


def for_the_journal(entry: Entry, priority: int) -> str:
    """The same for a stderr that the journal reads: it has the time itself, and the priority by sd-daemon(3)."""
    lines = [f"{_told(entry.words)} {_fields(entry)}", *(f"{TRACE}{more}" for more in entry.trace)]
    return "\n".join(f"<{priority}>{line}" for line in lines)


def _fields(entry: Entry) -> str:
    """`[event=ready endpoint=...]`: a value with anything but plain characters stands in quotes, as in JSON."""
    shown = [f"{MARK}{_quoted(entry.event)}"]
    said = {word.strip("()[],;:") for word in entry.words.split()}
    for name, values in entry.fields.items():
        # A client chooses its ids: they always stand where nobody can take them for words of ours.
        if name == "request_id" or not said.issuperset(values):
            shown.append(f"{name}={','.join(map(_quoted, values))}")
    return f"{' '.join(shown)}]"


def _quoted(value: str) -> str:
    if len(value) > LONGEST_VALUE:
        value = f"{value[:LONGEST_VALUE]}..."
    if value and _BARE.issuperset(value):
        return value
    return _told(harmless(json.dumps(value, ensure_ascii=False)))


def _told(text: str) -> str:
    """The text without anything that a search for an event would find: words and values may hold a client's string."""
    return text.replace(MARK, MARK.replace("[", r"\u005b"))
