"""The log's one handler: what its lines hold, that nothing forges one, that it waits for nobody; and their events."""

import ast
import fcntl
import logging
import os
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jetsel
from jetsel.base import logs
from jetsel.base.events import current_request_ids, event, run_about
from jetsel.base.logs import MOST_REPEATS, WINDOW_S, Handler
from tests.waiting import LIMIT_S


def record(words: str, *args: object, level: int = logging.INFO, name: str = "ready", **fields: object) -> Any:
    logger = logging.getLogger("jetsel.test")
    made = logger.makeRecord(logger.name, level, __file__, 7, words, args, None, "func", event(name, **fields))
    made.created, made.msecs = 1795301226.1239, 123.9
    return made


class Output:
    """A handler, and the other end of its stderr."""

    def __init__(self, *, is_journal: bool = False) -> None:
        self.reader, self._writer = os.pipe()
        os.set_blocking(self.reader, False)
        found = os.fstat(self._writer)
        environment = {"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino}"} if is_journal else {}
        self.handler = Handler(self._writer, environment)

    def read(self) -> list[str]:
        try:
            return os.read(self.reader, 1 << 20).decode().splitlines()
        except BlockingIOError:
            return []

    def written(self, *records: Any) -> list[str]:
        """The lines that these records come to."""
        for one in records:
            self.handler.handle(one)
        return self.read()

    def close(self) -> None:
        self.handler.close()
        os.close(self.reader)
        os.close(self._writer)


@pytest.fixture
def output() -> Iterator[Output]:
    made = Output()
    yield made
    made.close()


def test_a_line_for_people_has_its_time_in_utc_its_level_its_words_and_all_fields(output: Output) -> None:
    failed = record("model m failed", level=logging.ERROR, name="model-failed", model="m", code="no such", took_s=0.25)
    line = '2026-11-21T22:47:06.123Z error    model m failed [event=model-failed model=m code="no such" took_s=0.25]'
    assert output.written(failed) == [line]


def test_a_line_for_the_journal_has_its_priority_and_each_of_a_traceback_s_has_it_too() -> None:
    output = Output(is_journal=True)
    levels = [logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL]
    lines = output.written(*(record("x", level=level) for level in levels))
    assert [line[:4] for line in lines] == ["<7>x", "<6>x", "<4>x", "<3>x", "<2>x"]
    assert all(line.startswith("<3>") for line in output.written(with_traceback()))
    output.close()


def with_traceback() -> Any:
    made = record("failed", level=logging.ERROR, name="request-failed")
    try:
        raise RuntimeError("first\n2026-11-21T22:47:06.123Z info     ready\x1b[2J")
    except RuntimeError:
        made.exc_info = sys.exc_info()
    return made


def test_a_traceback_cannot_pass_for_lines_of_the_log(output: Output) -> None:
    first, *more = output.written(with_traceback())
    assert first.endswith("error    failed [event=request-failed]")
    assert more[0] == "    | Traceback (most recent call last):"
    assert all(line.startswith("    | ") and line.isprintable() for line in more)


def test_what_is_not_known_is_left_out_and_several_values_stand_together(output: Output) -> None:
    (line,) = output.written(record("x", pid=None, rail=["A", "B C"], models=[]))
    assert line.endswith('x [event=ready rail=A,"B C"]')


def test_a_library_s_line_names_the_library(output: Output) -> None:
    (line,) = output.written(logging.makeLogRecord({"msg": "hello", "name": "PIL", "levelno": logging.INFO}))
    assert line.endswith("hello [event=library logger=PIL]")


@given(
    st.text(st.characters()) | st.sampled_from(["a\n... ready [event=ready]", "\x1b[31m", "\u202e", "\ud800", '" ]'])
)
def test_what_a_client_sends_stays_in_its_line_and_its_quotes(text: str) -> None:
    output = Output()
    (line,) = output.handler.lines(record("refused: %s", text, request_id=text))
    output.close()
    assert line.isprintable()
    assert line.count("[event=") == 1
    assert re.search(r'\[event=ready request_id=("(?:[^"\\]|\\.)*"|[\w\-.:/+@%,]+)\]$', line)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time by the handler's clock."""
    found = [0.0]
    monkeypatch.setattr(logs.time, "monotonic", lambda: found[0])
    return found


def failed(**fields: object) -> Any:
    return record("m failed", level=logging.ERROR, **{"name": "model-failed", **fields})


def test_a_fault_that_repeats_is_written_a_few_times_in_a_window_and_the_next_line_has_the_count(
    output: Output, now: list[float]
) -> None:
    assert len(output.written(*(failed() for _ in range(600)))) == MOST_REPEATS
    now[0] = WINDOW_S
    first, *more = output.written(failed(), failed())
    assert first.endswith(f"left_out={600 - MOST_REPEATS}]")
    assert len(more) == 1
    assert "left_out" not in more[0]


def test_lines_about_different_models_or_of_different_events_are_counted_apart(
    output: Output, now: list[float]
) -> None:
    assert len(output.written(*(failed(model=f"m{number % 20}") for number in range(200)))) == 20 * MOST_REPEATS
    assert len(output.written(*(failed(name="crashed") for _ in range(9)))) == MOST_REPEATS


def test_what_was_asked_for_one_by_one_is_not_left_out(output: Output, now: list[float]) -> None:
    assert len(output.written(*(record("answered", name="request") for _ in range(100)))) == 100


def test_a_pipe_that_nobody_reads_is_not_waited_for_and_what_was_lost_is_counted() -> None:
    reader, writer = os.pipe()
    flags = fcntl.fcntl(writer, fcntl.F_GETFL)
    handler = Handler(writer, {})
    done = threading.Event()

    def write() -> None:
        for _ in range(1000):
            handler.handle(record("x" * 3000))
        done.set()

    threading.Thread(target=write, daemon=True).start()
    assert done.wait(LIMIT_S)
    came = os.read(reader, 1 << 20).count(b"\n")
    handler.handle(record("again"))
    lost, again = os.read(reader, 1 << 20).decode().splitlines()
    assert f"[event=log-lines-lost count={1000 - came}]" in lost
    assert "again" in again
    assert fcntl.fcntl(writer, fcntl.F_GETFL) == flags, "who shares it would find it changed"
    os.close(reader)
    handler.handle(record("to nobody"))  # no exception
    os.close(writer)


PACKAGE = Path(jetsel.__file__).parent
DOCUMENT = PACKAGE.parent / "docs" / "monitoring.md"
LEVELS = {"debug", "info", "warning", "error", "critical", "exception"}
OF_OTHERS = "library"  # lines that libraries log


def calls() -> list[tuple[str, ast.Call]]:
    """Every call in the package, and where it stands."""
    return [
        (f"{path.relative_to(PACKAGE)}:{node.lineno}", node)
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    ]


def test_every_line_that_is_logged_names_its_event() -> None:
    without = [
        place
        for place, call in calls()
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)
        if call.func.value.id == "log" and call.func.attr in LEVELS
        if not any(keyword.arg == "extra" for keyword in call.keywords)
    ]
    assert without == []


def test_the_document_lists_every_event_and_no_other() -> None:
    named = {
        str(part.value)
        for _, call in calls()
        if isinstance(call.func, ast.Name) and call.func.id == "event"
        for part in ast.walk(call.args[0])
        if isinstance(part, ast.Constant)
    }
    rows = re.findall(r"^\| (`[^|]+) \|", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`([a-z-]+)`", row)]
    assert sorted(listed) == sorted({*named, OF_OTHERS})


def test_requests_are_those_of_the_innermost_work_and_of_this_thread() -> None:
    def fail() -> None:
        assert current_request_ids() == ("b",)
        raise ValueError("out")

    def work() -> tuple[str, ...]:
        with pytest.raises(ValueError, match="out"):
            run_about(lambda: ("b",), fail)
        return current_request_ids()

    assert run_about(("a", "c"), work) == ("a", "c")
    assert current_request_ids() == ()
