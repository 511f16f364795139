"""The log's one output: fields for the journal where it reads stderr, readable lines elsewhere, floods cut short."""

from __future__ import annotations

import contextlib
import copy
import faulthandler
import logging
import os
import sys
import threading
import time
from collections.abc import Mapping
from types import TracebackType

from jetsel.daemon.logs.entry import entry_of, words_of
from jetsel.daemon.logs.flood import WINDOW_S, Flood
from jetsel.daemon.logs.journal import SOCKET, Journal, encode, is_connected, pairs_of, priority
from jetsel.daemon.logs.readable import for_the_journal, readable
from jetsel.daemon.logs.stray import Stray
from jetsel.daemon.logs.stream import Stream
from jetsel.errors import ConfigError, JetselError
from jetsel.events import event, requests

log = logging.getLogger("jetsel.daemon")


class Handler(logging.Handler):
    """Writes each record at once, in the thread that logs it, and waits for nobody: what cannot be written is counted.

    A thread of its own, begun with the first line that is left out, tells how many were.
    """

    def __init__(
        self, fd: int, environment: Mapping[str, str], journal_socket: str = SOCKET, stray: Stray | None = None
    ) -> None:
        """fd: stderr, or what it was before `stray`, which ends with this, led it into the log."""
        super().__init__()
        self._stray = stray
        self._stream = Stream(fd)
        self._journal = Journal(journal_socket) if is_connected(fd, environment) else None
        self._is_coloured = self._stream.is_terminal and not environment.get("NO_COLOR")  # no-color.org
        self._flood = Flood()
        self._lost = 0
        self._is_cut = threading.Event()  # there is a count to tell, or this is closed
        self._teller: threading.Thread | None = None
        self._closed = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write it, or count it where its kind floods. Called under the handler's lock."""
        record.about = requests()  # now: its count may be told by another thread
        now_s = time.monotonic()
        self._tell_counts(now_s)
        if self._flood.is_told(record, now_s):
            self._write(record)
            return
        if self._teller is None and not self._closed:
            self._teller = threading.Thread(target=self._tell_in_time, name="log", daemon=True)
            with contextlib.suppress(RuntimeError):  # no thread can be had: the next line tells the counts
                self._teller.start()
        self._is_cut.set()

    def close(self) -> None:
        """Tell what was only counted, and give the socket back."""
        self.acquire()
        try:
            if not self._closed:
                self._closed = True
                self._tell_counts(float("inf"))
                self._is_cut.set()
                if self._stray is not None:
                    self._stray.close()
                self._stream.close()
                if self._journal is not None:
                    self._journal.close()
        finally:
            self.release()
        super().close()

    def _tell_in_time(self) -> None:
        """The thread: sleeps until a count is due."""
        while True:
            self.acquire()
            try:
                if self._closed:
                    return
                self._is_cut.clear()
                self._tell_counts(time.monotonic())
                due_s = self._flood.next_s
            finally:
                self.release()
            if due_s is None:
                self._is_cut.wait()
            else:
                time.sleep(max(due_s - time.monotonic(), 0.01))

    def _tell_counts(self, now_s: float) -> None:
        for record, count in self._flood.over(now_s):
            self._write(_counted(record, count))

    def _write(self, record: logging.LogRecord) -> None:
        if self._lost and self._put(_lost(self._lost)):
            self._lost = 0
        if not self._put(record):
            self._lost += 1

    def _put(self, record: logging.LogRecord) -> bool:
        entry = entry_of(record)
        if self._journal is None:
            return self._stream.write(readable(entry, is_coloured=self._is_coloured))
        if self._journal.send(encode(pairs_of(entry))):
            return True
        return self._stream.write(for_the_journal(entry, priority(record.levelno)))


def _counted(record: logging.LogRecord, count: int) -> logging.LogRecord:
    """The last of the lines that were left out, with how many they were."""
    found = copy.copy(record)
    found.msg = f"{words_of(record)}; and {count} more like it in the last {WINDOW_S:g} s"
    found.args = found.exc_info = None
    found.fields = {**(getattr(record, "fields", None) or {}), "left_out": count}
    return found


def _lost(count: int) -> logging.LogRecord:
    told = event("log-lines-lost", count=count)
    return log.makeRecord(
        log.name,
        logging.WARNING,
        __file__,
        0,
        "%d lines of the log were lost: nobody took them",
        (count,),
        None,
        extra=told,
    )


def begin(level: str) -> None:
    """Send every line of this process's log to its stderr, or to the journal that reads it; a crash's last one too.

    What libraries print there by themselves becomes lines of the log.
    """
    root = logging.getLogger()
    if not any(isinstance(handler, Handler) for handler in root.handlers):
        fd, stray = sys.stderr.fileno(), None
        with contextlib.suppress(OSError):  # no descriptors are left: what libraries print goes where it went
            stray = Stray(fd)
            fd = stray.own_fd
        root.addHandler(Handler(fd, os.environ, stray=stray))
        faulthandler.enable(fd)  # where each thread was, when the service manager ends one that hangs (WatchdogSignal=)
    sys.excepthook = _crashed
    threading.excepthook = _thread_ended
    set_level(level)


def set_level(level: str) -> None:
    """Tell from this level on: "debug", "info", "warning" or "error"."""
    logging.getLogger().setLevel(level.upper())


def cannot_start(error: JetselError) -> int:
    """Tell why the daemon does not start, and return its exit status."""
    log.critical("cannot start: %s", error, extra=event("not-started", code=error.code))
    return 2 if isinstance(error, ConfigError) else 1


def _crashed(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    log.critical("the daemon ends of a defect of jetsel's", exc_info=(kind, error, trace), extra=event("crashed"))


def _thread_ended(what: threading.ExceptHookArgs) -> None:
    name, error = "?" if what.thread is None else what.thread.name, what.exc_value or what.exc_type()
    told = event("thread-ended", thread=name)
    log.critical("thread %s ended of a defect of jetsel's", name, exc_info=error, extra=told)
