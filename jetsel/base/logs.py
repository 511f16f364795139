"""The log of the daemon: one handler that writes each record to stderr, for the journal or for people.

A line is the words of the record, then its event and fields: `ready after 0.22 s [event=ready took_s=0.216]`. If the
journal reads stderr, the priority stands in front as `<6>` (sd-daemon(3)); elsewhere the time and the level do.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import select
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from types import TracebackType
from typing import NamedTuple

from jetsel.base.errors import ConfigError, JetselError
from jetsel.base.events import event, harmless, requests

PRIORITIES = {logging.CRITICAL: 2, logging.ERROR: 3, logging.WARNING: 4, logging.INFO: 6, logging.DEBUG: 7}  # syslog(3)

LONGEST_VALUE = 200  # characters of a field that are written
MARK = "[event="  # stands in a line once: if words or values hold it, it is written otherwise
CONTINUED = "    | "  # begins each line of a traceback, so that none passes for a line of the log

WINDOW_S = 10.0
MOST_REPEATS = 5  # warnings and errors of one kind that are written in a window
SUBJECTS = ("family", "model", "path", "section")  # fields that make two records of one event different kinds

_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/+@%,")

log = logging.getLogger("jetsel.daemon")


class _Window(NamedTuple):
    ends_s: float
    written: int
    left_out: int


class Handler(logging.Handler):
    """Writes lines at once, in the thread that logs, and waits for nobody: what stderr does not take is counted."""

    def __init__(self, fd: int, environment: Mapping[str, str]) -> None:
        super().__init__()
        self._fd = fd
        self._is_journal = is_journal(fd, environment)
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)
        self._windows: dict[tuple[object, ...], _Window] = {}
        self._lost = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record unless it repeats too often. logging calls this under the handler's lock."""
        left_out = self._left_out(record, time.monotonic())
        if left_out is None:
            return
        lines = self.lines(record, left_out)
        if self._lost:
            fields = event("log-lines-lost", count=self._lost)
            lost = log.makeRecord(log.name, logging.WARNING, __file__, 0, "lines were lost", (), None, extra=fields)
            lines = self.lines(lost) + lines
        if self._write(lines):
            self._lost = 0
        else:
            self._lost += 1

    def lines(self, record: logging.LogRecord, left_out: int = 0) -> list[str]:
        """Return the line of a record, and one more for each line of its traceback."""
        fields = {"request_id": requests(), **getattr(record, "fields", {"logger": record.name})}
        if left_out:
            fields["left_out"] = left_out
        words = f"{_unmarked(harmless(_words(record)))} {_shown(getattr(record, 'event', 'library'), fields)}"
        more = [f"{CONTINUED}{harmless(line)}" for line in _traceback(record)]
        if self._is_journal:
            return [f"<{priority(record.levelno)}>{line}" for line in (words, *more)]
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        return [f"{at}.{int(record.msecs):03d}Z {record.levelname.lower():<8} {words}", *more]

    def _left_out(self, record: logging.LogRecord, now_s: float) -> int | None:
        """Return how many records like this one were left out before it; None if this one is, too."""
        name = getattr(record, "event", None)
        if record.levelno < logging.WARNING:
            return 0  # one by one asked for: by `[log] requests`, a level, or a reload
        fields = getattr(record, "fields", {})
        kind = (name, record.name, record.lineno, *(str(fields.get(subject)) for subject in SUBJECTS))
        window = self._windows.get(kind, _Window(now_s + WINDOW_S, 0, 0))
        if now_s >= window.ends_s:
            window = _Window(now_s + WINDOW_S, 0, window.left_out)
        is_written = window.written < MOST_REPEATS
        left_out = 0 if is_written else window.left_out + 1
        self._windows[kind] = _Window(window.ends_s, window.written + is_written, left_out)
        return window.left_out if is_written else None

    def _write(self, lines: list[str]) -> bool:
        """Write lines as far as there is room now; return whether all were written."""
        try:
            for line in lines:
                if not self._has_room():
                    return False
                # A pipe that is ready takes so much without waiting (poll(2), PIPE_BUF); a longer line is cut.
                os.write(self._fd, line.encode("utf-8", "backslashreplace")[: select.PIPE_BUF - 1] + b"\n")
        except OSError:  # nobody reads any more, or the disk is full
            return False
        return True

    def _has_room(self) -> bool:
        return any(events & select.POLLOUT for _, events in self._poll.poll(0))


def is_journal(fd: int, environment: Mapping[str, str]) -> bool:
    """Whether the journal reads this descriptor: $JOURNAL_STREAM names its device and inode (systemd.exec(5))."""
    status = os.fstat(fd)
    return environment.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


def priority(level: int) -> int:
    """Return the priority of syslog(3) for a level of logging; one between two of ours is the less urgent."""
    return next((number for level_at, number in PRIORITIES.items() if level >= level_at), PRIORITIES[logging.DEBUG])


def _words(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):  # the call has a defect: what it was to say is better than nothing
        return f"{record.msg} {record.args!r}"


def _traceback(record: logging.LogRecord) -> list[str]:
    if not record.exc_info or record.exc_info[0] is None:
        return []
    return "".join(traceback.format_exception(*record.exc_info)).splitlines()


def _shown(name: str, fields: Mapping[str, object]) -> str:
    """`[event=ready pid=7]`: a field without a value is left out, several values of one stand behind commas."""
    shown = [f"{MARK}{name}"]
    for field, value in fields.items():
        values = value if isinstance(value, (tuple, list)) else (value,)
        shown_values = [_value(each) for each in values if each is not None]
        if shown_values:
            shown.append(f"{field}={','.join(shown_values)}")
    return f"{' '.join(shown)}]"


def _value(value: object) -> str:
    """A value of plain characters as it is, any other as a string of JSON."""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    if len(text) > LONGEST_VALUE:
        text = f"{text[:LONGEST_VALUE]}..."
    return text if text and _BARE.issuperset(text) else _unmarked(harmless(json.dumps(text, ensure_ascii=False)))


def _unmarked(text: str) -> str:
    """The text without anything that a search for an event would find: it may hold what a client sent."""
    return text.replace(MARK, MARK.replace("[", r"\u005b"))


def begin(level: str) -> None:
    """Send what this process logs to its stderr, uncaught exceptions and the stacks of a crash included."""
    root = logging.getLogger()
    if not any(isinstance(handler, Handler) for handler in root.handlers):
        root.addHandler(Handler(sys.stderr.fileno(), os.environ))
        faulthandler.enable()  # where each thread was, when the service manager ends a daemon that hangs
    sys.excepthook = _crashed
    threading.excepthook = _thread_ended
    set_level(level)


def set_level(level: str) -> None:
    """Log from this level on: "debug", "info", "warning" or "error"."""
    logging.getLogger().setLevel(level.upper())


def cannot_start(error: JetselError) -> int:
    """Log why the daemon does not start, and return its exit status."""
    log.critical("cannot start: %s", error, extra=event("not-started", code=error.code))
    return 2 if isinstance(error, ConfigError) else 1


def _crashed(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    log.critical("the daemon ends because of a defect in jetsel", exc_info=(kind, error, trace), extra=event("crashed"))


def _thread_ended(what: threading.ExceptHookArgs) -> None:
    name, error = "?" if what.thread is None else what.thread.name, what.exc_value or what.exc_type()
    fields = event("thread-ended", thread=name)
    log.critical("thread %s ended because of a defect in jetsel", name, exc_info=error, extra=fields)
