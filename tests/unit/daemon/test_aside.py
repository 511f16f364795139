"""Work that stands behind the requests, and what it starts, which does not; where that may not be, it is done too."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextvars import ContextVar

import pytest

from jetsel.daemon import aside as aside_module
from jetsel.daemon.aside import LEAST_URGENT, NICENESS, aside

place: ContextVar[str] = ContextVar("place", default="nowhere")


def niceness(thread: int = 0) -> int:
    return os.getpriority(os.PRIO_PROCESS, thread or threading.get_native_id())


@pytest.fixture
def may_return() -> Iterator[bool]:
    """Whether a thread of this process may be brought back, as a thread finds out that ends with it."""
    found = []

    def find_out() -> None:
        try:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), before + 1)
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), before)
        except PermissionError:
            found.append(False)
        else:
            found.append(True)

    before = niceness()
    thread = threading.Thread(target=find_out)
    thread.start()
    thread.join()
    yield found[0]
    assert niceness() == before, "the caller is never moved"


def behind(may_return: bool) -> int:
    """Where work is to stand."""
    return min(LEAST_URGENT, niceness() + NICENESS) if may_return else niceness()


def test_the_work_stands_behind_where_what_it_starts_may_come_back(may_return: bool) -> None:
    assert aside(niceness, starts_threads=True) == behind(may_return)


def test_work_that_starts_nothing_stands_behind_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    forbid_return(monkeypatch)
    usual = niceness()
    assert aside(niceness, starts_threads=False) == min(LEAST_URGENT, usual + NICENESS)
    assert niceness() == usual


def test_what_it_starts_is_brought_back(may_return: bool) -> None:
    told, over = threading.Event(), threading.Event()
    found: list[int] = []

    def stay() -> None:
        found.append(threading.get_native_id())
        told.set()
        over.wait(60)

    def work() -> int:
        threading.Thread(target=stay, daemon=True).start()
        told.wait(60)
        return niceness(found[0])

    meanwhile = aside(work, starts_threads=True)
    assert meanwhile == behind(may_return), "it is handed on"
    assert niceness(found[0]) == niceness()
    over.set()


def test_where_it_may_not_come_back_it_is_done_by_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    forbid_return(monkeypatch)
    assert aside(threading.get_native_id, starts_threads=True) == threading.get_native_id()


def forbid_return(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have it be as for a person's process, which may only go behind."""
    usual, really = niceness(), os.setpriority

    def refuse(which: int, who: int, to: int) -> None:
        if to <= usual:
            raise PermissionError
        really(which, who, to)

    monkeypatch.setattr(os, "setpriority", refuse)


def test_what_it_raises_is_raised_and_what_it_is_about_is_known() -> None:
    def fail() -> None:
        raise KeyError(place.get())

    place.set("here")
    with pytest.raises(KeyError, match="here"):
        aside(fail, starts_threads=True)


@pytest.mark.parametrize("error", [OSError(24, "Too many open files"), MemoryError()])
def test_whoever_waits_is_told_of_what_fails_beside_the_work(
    monkeypatch: pytest.MonkeyPatch, may_return: bool, error: Exception
) -> None:
    def fail() -> set[int]:
        raise error

    monkeypatch.setattr(aside_module, "_threads", fail)
    if may_return:
        with pytest.raises(type(error)):
            aside(niceness, starts_threads=True)
    else:
        assert aside(niceness, starts_threads=True) == niceness()


def test_without_a_thread_to_be_had_it_is_done_by_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert aside(threading.get_native_id, starts_threads=True) == threading.get_native_id()
