"""The daemon's log: one handler that writes each record to stderr, for the journal or for people.

A line has the record's words, then its event and fields: `ready after 0.22 s [event=ready took_s=0.216]`. If the
journal reads stderr, the line starts with the priority as `<6>` (sd-daemon(3)), otherwise with time and level.
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
from jetsel.base.events import current_request_ids, event, harmless

PRIORITIES = {logging.CRITICAL: 2, logging.ERROR: 3, logging.WARNING: 4, logging.INFO: 6, logging.DEBUG: 7}  # syslog(3)

LONGEST_VALUE = 200  # characters written of one value
MARK = "[event="  # appears once in a line: in words and values it is escaped
CONTINUED = "    | "  # prefix of traceback lines, so that they cannot be taken for log lines

WINDOW_S = 10.0
MOST_REPEATS = 5  # warnings and errors of one kind written in a window
SUBJECTS = ("family", "model", "path", "section")  # records of one event with different values here are different kinds

_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/+@%,")

log = logging.getLogger("jetsel.daemon")


class _Window(NamedTuple):
    """The time in which at most MOST_REPEATS records of one kind are written, and the counts so far."""

    ends_s: float
    written: int
    left_out: int


class Handler(logging.Handler):
    """Writes lines in the thread that logs, without waiting; lines that stderr does not accept are counted."""

    def __init__(self, fd: int, environment: Mapping[str, str]) -> None:
        super().__init__()
        self._fd = fd
        self._is_journal = is_journal(fd, environment)
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)
        self._windows: dict[tuple[object, ...], _Window] = {}
        self._lost = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record unless its kind repeats too often. logging calls this method under the handler's lock."""
        left_out = self._count_left_out(record, time.monotonic())
        if left_out is None:
            return
        lines = self.lines(record, left_out)
        if self._lost:
            fields = event("log-lines-lost", count=self._lost)
            notice = log.makeRecord(log.name, logging.WARNING, __file__, 0, "lines were lost", (), None, extra=fields)
            lines = self.lines(notice) + lines
        if self._write(lines):
            self._lost = 0
        else:
            self._lost += 1

    def lines(self, record: logging.LogRecord, left_out: int = 0) -> list[str]:
        """Return a record's line and those of its traceback. left_out: number of similar records left out before it."""
        fields = {"request_id": current_request_ids(), **getattr(record, "fields", {"logger": record.name})}
        if left_out:
            fields["left_out"] = left_out
        name = getattr(record, "event", "library")
        text = f"{_escape_mark(harmless(_message_text(record)))} {_event_text(name, fields)}"
        traceback_lines = [f"{CONTINUED}{harmless(line)}" for line in _traceback_lines(record)]
        if self._is_journal:
            return [f"<{priority(record.levelno)}>{line}" for line in (text, *traceback_lines)]
        time_text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        return [f"{time_text}.{int(record.msecs):03d}Z {record.levelname.lower():<8} {text}", *traceback_lines]

    def _count_left_out(self, record: logging.LogRecord, now_s: float) -> int | None:
        """Return how many records of this kind were left out since the last one written; None to leave this out too."""
        if record.levelno < logging.WARNING:
            return 0  # the owner enabled them by `[log] requests` or a level
        fields = getattr(record, "fields", {})
        subjects = [str(fields.get(subject)) for subject in SUBJECTS]
        kind = (getattr(record, "event", None), record.name, record.lineno, *subjects)
        window = self._windows.get(kind, _Window(now_s + WINDOW_S, 0, 0))
        if now_s >= window.ends_s:
            window = _Window(now_s + WINDOW_S, 0, window.left_out)
        is_written = window.written < MOST_REPEATS
        left_out = 0 if is_written else window.left_out + 1
        self._windows[kind] = _Window(window.ends_s, window.written + is_written, left_out)
        return window.left_out if is_written else None

    def _write(self, lines: list[str]) -> bool:
        """Write lines as long as stderr accepts them without waiting; return True if all were written."""
        try:
            for line in lines:
                if not any(events & select.POLLOUT for _, events in self._poll.poll(0)):
                    return False
                # A ready pipe accepts PIPE_BUF bytes without waiting (poll(2)); a longer line is cut.
                os.write(self._fd, line.encode("utf-8", "backslashreplace")[: select.PIPE_BUF - 1] + b"\n")
        except OSError:  # the reader is gone, or the disk is full
            return False
        return True


def is_journal(fd: int, environment: Mapping[str, str]) -> bool:
    """Return whether the journal reads this descriptor: $JOURNAL_STREAM has its device and inode (systemd.exec(5))."""
    status = os.fstat(fd)
    return environment.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


def priority(level: int) -> int:
    """Return the syslog(3) priority of a logging level; levels in between get the less urgent one."""
    priorities = [number for known_level, number in PRIORITIES.items() if level >= known_level]
    return priorities[0] if priorities else PRIORITIES[logging.DEBUG]


def _message_text(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):  # the log call has a defect; show its parts instead
        return f"{record.msg} {record.args!r}"


def _traceback_lines(record: logging.LogRecord) -> list[str]:
    if not record.exc_info or record.exc_info[0] is None:
        return []
    return "".join(traceback.format_exception(*record.exc_info)).splitlines()


def _event_text(name: str, fields: Mapping[str, object]) -> str:
    """Return text such as `[event=ready pid=7]`: fields without a value are left out, commas join several values."""
    parts = [f"{MARK}{name}"]
    for field, value in fields.items():
        values = value if isinstance(value, (tuple, list)) else (value,)
        texts = [_value_text(item) for item in values if item is not None]
        if texts:
            parts.append(f"{field}={','.join(texts)}")
    return f"{' '.join(parts)}]"


def _value_text(value: object) -> str:
    """Return a field's value as text, at most LONGEST_VALUE long; as a JSON string unless all characters are _BARE."""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    if len(text) > LONGEST_VALUE:
        text = f"{text[:LONGEST_VALUE]}..."
    return text if text and _BARE.issuperset(text) else _escape_mark(harmless(json.dumps(text, ensure_ascii=False)))


def _escape_mark(text: str) -> str:
    """Return the text with MARK escaped, so that text from clients cannot imitate an event."""
    return text.replace(MARK, MARK.replace("[", r"\u005b"))


def start_logging(level: str) -> None:
    """Send this process's log to its stderr, including uncaught exceptions and the stacks after a crash."""
    root = logging.getLogger()
    if not any(isinstance(handler, Handler) for handler in root.handlers):
        root.addHandler(Handler(sys.stderr.fileno(), os.environ))
        faulthandler.enable()  # shows each thread's stack if the service manager aborts a hung daemon
    sys.excepthook = _log_uncaught
    threading.excepthook = _log_thread_end
    set_level(level)


def set_level(level: str) -> None:
    """Log messages of this level and above: "debug", "info", "warning" or "error"."""
    logging.getLogger().setLevel(level.upper())


def log_start_failure(error: JetselError) -> int:
    """Log why the daemon does not start, and return its exit status: 2 for a wrong configuration, otherwise 1."""
    log.critical("cannot start: %s", error, extra=event("not-started", code=error.code))
    return 2 if isinstance(error, ConfigError) else 1


def _log_uncaught(error_class: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Log an exception that ends the process (sys.excepthook)."""
    fields = event("crashed")
    log.critical("the daemon ends because of a defect in jetsel", exc_info=(error_class, error, trace), extra=fields)


def _log_thread_end(hook: threading.ExceptHookArgs) -> None:
    """Log an exception that ends a thread (threading.excepthook)."""
    name, error = "?" if hook.thread is None else hook.thread.name, hook.exc_value or hook.exc_type()
    fields = event("thread-ended", thread=name)
    log.critical("thread %s ended because of a defect in jetsel", name, exc_info=error, extra=fields)
