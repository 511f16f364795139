"""The log's output as a whole: where it goes, what it does when nobody reads, and that it never waits nor raises."""

from __future__ import annotations

import fcntl
import logging
import os
import select
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jetsel.daemon.logs import flood
from jetsel.daemon.logs.handler import Handler
from jetsel.events import about, event
from tests.unit.daemon.logs.records import JournalSocket

LIMIT_S = 20.0


class Log:
    """A logger with one handler, whose stderr is a pipe or, connected to the journal, a socket."""

    def __init__(self, path: Path | None = None) -> None:
        self.ours, theirs = socket.socketpair()
        self._theirs = theirs
        stat = os.fstat(theirs.fileno())
        environment = {} if path is None else {"JOURNAL_STREAM": f"{stat.st_dev}:{stat.st_ino}"}
        self.handler = Handler(theirs.fileno(), environment, str(path))
        self.logger = logging.Logger("jetsel.test", logging.DEBUG)
        self.logger.addHandler(self.handler)

    def read(self) -> str:
        """What has come out of stderr by now."""
        text = b""
        while select.select([self.ours], [], [], 0)[0]:
            text += self.ours.recv(1 << 20)
        return text.decode()

    def close(self) -> None:
        self.logger.removeHandler(self.handler)
        self.handler.close()
        self.ours.close()
        self._theirs.close()


@pytest.fixture
def log() -> Iterator[Log]:
    made = Log()
    yield made
    made.close()


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[JournalSocket]:
    made = JournalSocket(tmp_path / "socket")
    yield made
    made.close()


@pytest.fixture
def journalled(journal: JournalSocket) -> Iterator[Log]:
    made = Log(Path(journal.path))
    yield made
    made.close()


def test_without_a_journal_lines_are_readable_and_plain(log: Log) -> None:
    log.logger.info("ready", extra=event("ready", pid=7))
    line = log.read()
    assert line.endswith("Z info     ready [event=ready pid=7]\n")
    assert "\x1b" not in line


def test_a_terminal_gets_colours_unless_it_asks_for_none() -> None:
    ours, theirs = os.openpty()
    for environment, has_colours in (({}, True), ({"NO_COLOR": "1"}, False)):
        handler = Handler(theirs, environment)
        handler.handle(logging.makeLogRecord({"msg": "hot", "levelno": 40, "levelname": "ERROR"}))
        assert (b"\x1b[" in os.read(ours, 4096)) is has_colours
        handler.close()
    os.close(ours)
    os.close(theirs)


def test_where_the_journal_reads_stderr_entries_go_to_its_socket_and_nothing_to_stderr(
    journalled: Log, journal: JournalSocket
) -> None:
    with about(("a", "b\nc")):
        journalled.logger.error("m failed", extra=event("model-failed", model="m"))
    entry = journal.entry()
    assert (entry["MESSAGE"], entry["PRIORITY"]) == ([b"m failed"], [b"3"])
    assert (entry["JETSEL_MODEL"], entry["JETSEL_REQUEST_ID"]) == ([b"m"], [b"a", b"b\nc"])
    assert entry["CODE_FUNC"] == [b"test_where_the_journal_reads_stderr_entries_go_to_its_socket_and_nothing_to_stderr"]
    assert journalled.read() == ""


def test_without_its_socket_the_journal_gets_lines_with_priorities_until_it_is_back(tmp_path: Path) -> None:
    path = tmp_path / "later"
    log = Log(path)
    log.logger.error("one", extra=event("crashed"))
    log.logger.debug("two", extra=event("ready"))
    assert log.read() == "<3>one [event=crashed]\n<7>two [event=ready]\n"
    server = JournalSocket(path)
    log.logger.warning("three", extra=event("ready"))
    assert server.entry()["MESSAGE"] == [b"three"]
    assert log.read() == ""
    server.close()
    log.close()


def test_a_stderr_that_nobody_reads_is_not_waited_for_and_what_was_lost_is_told(log: Log) -> None:
    def write() -> None:
        for number in range(5000):
            log.logger.info("line %d %s", number, "x" * 500, extra=event("request"))

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    writer.join(LIMIT_S)
    assert not writer.is_alive(), "it waits for its reader"
    came = log.read().splitlines()
    assert 0 < len(came) < 5000
    log.logger.info("again", extra=event("ready"))
    lost, again = [line for line in log.read().splitlines() if line]
    whole = [line for line in came if line.endswith("[event=request]")]
    assert f"{5000 - len(whole)} lines of the log were lost" in lost
    assert "event=log-lines-lost" in lost
    assert "again" in again


def test_a_pipe_that_others_write_into_too_is_not_waited_for_and_keeps_its_flags() -> None:
    reader, writer = os.pipe()
    before = fcntl.fcntl(writer, fcntl.F_GETFL)
    handler = Handler(writer, {})
    done = threading.Event()

    def write() -> None:
        for _ in range(1000):
            handler.handle(logging.makeLogRecord({"msg": "x" * 3000, "event": "request", "levelname": "INFO"}))
        done.set()

    threading.Thread(target=write, daemon=True).start()
    assert done.wait(LIMIT_S)
    assert fcntl.fcntl(writer, fcntl.F_GETFL) == before
    os.close(reader)
    handler.handle(logging.makeLogRecord({"msg": "to nobody", "levelname": "INFO"}))  # and no SIGPIPE, no exception
    handler.close()
    os.close(writer)


def test_a_journal_that_takes_nothing_is_not_waited_for_and_what_was_lost_is_told(
    journalled: Log, journal: JournalSocket
) -> None:
    for number in range(20_000):
        journalled.logger.info("line %d", number, extra=event("request"))
    entries = 0
    while not journal.is_empty:
        journal.entry()
        entries += 1
    lines = sum(line.endswith("[event=request]") for line in journalled.read().splitlines())
    journalled.logger.info("again", extra=event("ready"))
    lost = journal.entry()
    assert lost["JETSEL_EVENT"] == [b"log-lines-lost"]
    assert int(lost["JETSEL_COUNT"][0]) == 20_000 - entries - lines
    assert journal.entry()["MESSAGE"] == [b"again"]


def test_a_fault_that_repeats_is_told_a_few_times_and_then_counted_though_nothing_else_is_logged(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flood, "WINDOW_S", 0.3)
    for number in range(517):
        with about((f"r{number}",)):
            log.logger.error("m failed", extra=event("model-failed", model="m"))
    give_up = time.monotonic() + LIMIT_S
    text = log.read()
    while "more like it" not in text:
        assert time.monotonic() < give_up
        time.sleep(0.02)
        text += log.read()
    lines = text.splitlines()
    assert len(lines) == flood.LINES + 1
    assert "request_id=r0]" in lines[0]
    assert f"m failed; and {517 - flood.LINES} more like it in the last" in lines[-1]
    assert f"left_out={517 - flood.LINES}" in lines[-1] or "and 512 more" in lines[-1]
    assert "request_id=r516" in lines[-1], "the last one's, though another thread tells of it"


def test_what_was_only_counted_is_told_at_the_end() -> None:
    log = Log()
    for _ in range(20):
        log.logger.error("m failed", extra=event("model-failed", model="m"))
    log.handler.close()
    assert log.read().splitlines()[-1].startswith("20")
    assert log.handler._flood.next_s is None
    log.close()


def test_an_exception_goes_with_its_line(journalled: Log, journal: JournalSocket) -> None:
    try:
        raise RuntimeError("two\nlines\x1b")
    except RuntimeError:
        journalled.logger.exception("failed", extra=event("request-failed"))
    words, *trace = journal.entry()["MESSAGE"][0].decode().splitlines()
    assert words == "failed"
    assert trace[0] == "    | Traceback (most recent call last):"
    assert trace[-2:] == ["    | RuntimeError: two", "    | lines\\x1b"]


def test_lines_of_many_threads_stay_whole(log: Log) -> None:
    def write(name: str) -> None:
        for _ in range(50):
            log.logger.info(name * 20, extra=event("request"))

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words = [line.split()[2] for line in log.read().splitlines()]
    assert sorted(words) == sorted(name * 20 for name in "abcd" for _ in range(50))
