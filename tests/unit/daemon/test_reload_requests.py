"""Whoever asks for a reload is answered, once, however the reload ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from jetsel.base.errors import ReloadFailedError
from jetsel.base.notify import Notifier
from jetsel.daemon.port import Route
from jetsel.daemon.reload import ReloadRequests
from jetsel.daemon.tally import Tally
from jetsel.wire import PROTOCOL_VERSION, Reload, Reply
from tests.waiting import LIMIT_S, until

ROUTE = Route(1)


def message(request_id: str) -> tuple[Route, Reload]:
    return ROUTE, Reload(PROTOCOL_VERSION, request_id)


class Rig:
    """A requests whose reload does what the test says, and the replies that it gave."""

    def __init__(self, reload: Callable[[], list[str]]) -> None:
        self.replies: list[Any] = []
        self.requests = ReloadRequests(reload, self._reply, Notifier(), Tally())

    def _reply(self, route: Route, reply: Reply) -> None:
        assert route is ROUTE
        self.replies.append(reply)

    def wait_for(self, count: int) -> None:
        until(lambda: len(self.replies) >= count)


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


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ReloadFailedError("no such model"), "reload-failed"),
        (OSError(5, "Input/output error"), "internal"),
    ],
)
def test_whatever_a_reload_ends_with_who_asked_is_answered(error: Exception, code: str) -> None:
    def fail() -> list[str]:
        raise error

    rig = Rig(fail)
    for number in range(3):
        rig.requests.ask(message(str(number)))
        rig.wait_for(number + 1)
    assert [reply.code for reply in rig.replies] == [code] * 3


def test_who_asks_meanwhile_shares_the_next_and_not_the_one_that_has_read_already() -> None:
    gate = Gate()
    rig = Rig(gate)
    rig.requests.ask(message("first"))
    assert gate.begun.acquire(timeout=LIMIT_S)
    for number in range(10):
        rig.requests.ask(message(str(number)))
        rig.requests.ask()
    gate.go.release(2)
    rig.wait_for(11)
    assert [(reply.id, reply.changed) for reply in rig.replies] == [
        ("first", ["reload 1"]),
        *((str(number), ["reload 2"]) for number in range(10)),
    ]


def test_at_the_end_who_waits_or_asks_is_told_so_once() -> None:
    gate = Gate()
    rig = Rig(gate)
    rig.requests.ask(message("under way"))
    assert gate.begun.acquire(timeout=LIMIT_S)
    rig.requests.ask(message("waits"))
    rig.requests.close()
    rig.requests.give_up(0.05)
    rig.requests.ask(message("late"))
    gate.go.release(5)
    rig.requests.give_up(LIMIT_S)
    told = [(reply.id, reply.code, reply.retry) for reply in rig.replies]
    assert told == [(name, "shutting-down", True) for name in ("under way", "waits", "late")]
    assert gate.count == 1
