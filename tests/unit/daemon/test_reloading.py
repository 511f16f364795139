"""Whoever asks for a reload is answered, once, however the reload ends."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jetsel.daemon import reloading
from jetsel.daemon.message import Route
from jetsel.daemon.notify import PATIENCE_S, Notifier
from jetsel.daemon.reloading import Reloader
from jetsel.errors import ReloadFailedError
from jetsel.wire import PROTOCOL_VERSION, Reload, Reply

LIMIT_S = 60.0
ROUTE = Route(b"peer", delimited=False)


def message(request_id: str) -> tuple[Route, Reload]:
    return ROUTE, Reload(PROTOCOL_VERSION, request_id)


class Rig:
    """A reloader whose reload does what the test says, and the replies that it gave."""

    def __init__(self, reload: Callable[[], list[str]], notifier: Notifier | None = None) -> None:
        self.replies: list[Any] = []
        self.fails_for: set[str] = set()
        self._change = threading.Condition()
        self.reloader = Reloader(reload, self._reply, lambda: None, notifier or Notifier())

    def _reply(self, route: Route, reply: Reply) -> None:
        assert route is ROUTE
        if reply.id in self.fails_for:
            raise MemoryError
        with self._change:
            self.replies.append(reply)
            self._change.notify_all()

    def wait_for(self, count: int) -> None:
        with self._change:
            assert self._change.wait_for(lambda: len(self.replies) >= count, LIMIT_S), self.replies


class Gate:
    """A reload that takes until it is let go."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.go = threading.Semaphore(0)
        self.count = 0

    def __call__(self) -> list[str]:
        self.count += 1
        self.begun.release()
        assert self.go.acquire(timeout=LIMIT_S)
        return [f"reload {self.count}"]


def test_who_asks_is_told_what_changed() -> None:
    rig = Rig(lambda: ["[policy]"])
    for number in range(20):
        rig.reloader.ask(message(str(number)))
        rig.wait_for(number + 1)
    assert [(reply.id, reply.changed) for reply in rig.replies] == [(str(n), ["[policy]"]) for n in range(20)]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ReloadFailedError("no such model"), "reload-failed"),
        (MemoryError(), "reload-failed"),
        (OSError(5, "Input/output error"), "internal"),
        (RuntimeError("a defect"), "internal"),
        (RecursionError("a defect"), "internal"),
    ],
)
def test_whatever_a_reload_ends_with_who_asked_is_answered(error: Exception, code: str) -> None:
    def fail() -> list[str]:
        raise error

    rig = Rig(fail)
    for number in range(3):
        rig.reloader.ask(message(str(number)))
        rig.wait_for(number + 1)
    assert [reply.code for reply in rig.replies] == [code] * 3


def test_a_reply_that_cannot_be_sent_fails_neither_the_others_nor_the_next_reload() -> None:
    gate = Gate()
    rig = Rig(gate)
    rig.fails_for.add("broken")
    rig.reloader.ask(message("first"))
    assert gate.begun.acquire(timeout=LIMIT_S)
    for name in ("broken", "second"):
        rig.reloader.ask(message(name))
    gate.go.release(3)
    rig.wait_for(2)
    rig.reloader.ask(message("third"))
    rig.wait_for(3)
    assert [reply.id for reply in rig.replies] == ["first", "second", "third"]


def test_a_thread_that_ends_for_want_of_memory_is_followed_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(list)
    ended = threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda _: ended.set())
    with monkeypatch.context() as patched:
        patched.setattr(reloading, "about", _no_memory)
        rig.reloader.ask()
        assert ended.wait(LIMIT_S)
    rig.reloader.ask(message("next"))
    rig.wait_for(1)


def _no_memory(_: object) -> None:
    raise MemoryError


def test_who_asks_meanwhile_shares_the_next_and_not_the_one_that_has_read_already() -> None:
    gate = Gate()
    rig = Rig(gate)
    rig.reloader.ask(message("first"))
    assert gate.begun.acquire(timeout=LIMIT_S)
    for number in range(10):
        rig.reloader.ask(message(str(number)))
    rig.reloader.ask()
    gate.go.release(2)
    rig.wait_for(11)
    assert rig.replies[0].id == "first"
    assert rig.replies[0].changed == ["reload 1"]
    assert {reply.id for reply in rig.replies[1:]} == {str(number) for number in range(10)}
    assert all(reply.changed == ["reload 2"] for reply in rig.replies[1:])
    assert gate.count == 2


def test_at_the_end_who_waits_is_told_so_once() -> None:
    gate = Gate()
    rig = Rig(gate)
    rig.reloader.ask(message("under way"))
    assert gate.begun.acquire(timeout=LIMIT_S)
    rig.reloader.ask(message("waits"))
    rig.reloader.close()
    rig.reloader.ask(message("late"))
    assert rig.reloader.give_up(0.05) is False
    told = [(reply.id, reply.code, reply.retry) for reply in rig.replies]
    assert told == [(name, "shutting-down", True) for name in ("waits", "late", "under way")]
    gate.go.release(5)
    assert rig.reloader.give_up(LIMIT_S) is True
    assert (len(rig.replies), gate.count) == (3, 1), "nobody is answered twice"


def test_a_reload_that_ends_in_time_is_answered_as_it_ended() -> None:
    gate = Gate()
    rig = Rig(gate)
    rig.reloader.ask(message("under way"))
    assert gate.begun.acquire(timeout=LIMIT_S)
    rig.reloader.close()
    gate.go.release()
    assert rig.reloader.give_up(LIMIT_S) is True
    assert [reply.changed for reply in rig.replies] == [["reload 1"]]


def test_without_any_reload_there_is_nothing_to_give_up() -> None:
    rig = Rig(list)
    rig.reloader.close()
    assert rig.reloader.give_up(0.0) is True


def test_a_thread_that_cannot_be_had_refuses_the_reload_and_the_next_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(lambda: ["[policy]"])

    def cannot(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", cannot)
        rig.reloader.ask()  # as SIGHUP does, on the main thread
        rig.reloader.ask(message("first"))
    assert [(reply.id, reply.code) for reply in rig.replies] == [("first", "reload-failed")]
    rig.reloader.ask(message("second"))
    rig.wait_for(2)
    assert rig.replies[1].changed == ["[policy]"]


def test_a_service_manager_that_does_not_read_keeps_nobody_who_asks_waiting(tmp_path: Path) -> None:
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other,
    ):
        manager.bind(str(tmp_path / "notify"))
        other.setblocking(False)
        notifier = Notifier(str(tmp_path / "notify"))
        rig = Rig(list, notifier)
        with contextlib.suppress(BlockingIOError):
            while True:
                other.sendto(b"X=1", str(tmp_path / "notify"))
        rig.reloader.ask(message("slow"))
        began_s = time.monotonic()
        asked = 0
        while not rig.replies:
            rig.reloader.ask()
            asked += 1
        assert time.monotonic() - began_s > PATIENCE_S, "it was told nothing, and nobody waited for that"
        assert asked > 100, "asking waits for nothing"
        rig.reloader.close()
        assert rig.reloader.give_up(LIMIT_S)
        notifier.close()
