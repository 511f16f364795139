"""Whose messages take too much memory, and which connections are ended for that."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from jetsel.daemon.identity import of_process
from jetsel.daemon.zmtp.connection import Connection
from jetsel.daemon.zmtp.held import Held
from jetsel.daemon.zmtp.mechanism import Null

GREEDY, MODEST = (of_process(uid, uid, 1) for uid in (4_000_001, 4_000_002))


class Rig:
    """What may hold 10 MB, and connections that hold so many each."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.held = Held(10.0)
        self.greedy: list[Connection] = []
        self.modest: list[Connection] = []

    def hold(self, *megabytes: float, is_greedy: bool = True) -> None:
        for each in megabytes:
            ours, theirs = socket.socketpair()
            self._stack.enter_context(ours)
            self._stack.enter_context(theirs)
            who = GREEDY if is_greedy else MODEST
            connection = Connection(ours, 1, Null(who), who.name, 1_000_000, 0.0)
            connection.held_bytes = int(each * 1e6)
            self.held.count(connection)
            (self.greedy if is_greedy else self.modest).append(connection)

    @property
    def surplus(self) -> list[int]:
        """The numbers of the greedy one's connections that are ended; nobody else's may be."""
        return [self.greedy.index(each) for each in self.held.surplus([*self.modest, *self.greedy])]


@pytest.fixture
def rig() -> Iterator[Rig]:
    with ExitStack() as stack:
        yield Rig(stack)


def test_within_the_limit_nobody_is_hung_up_on(rig: Rig) -> None:
    rig.hold(4, 6)
    assert rig.surplus == []


def test_the_heaviest_go_until_the_rest_is_within_it(rig: Rig) -> None:
    rig.hold(1, 5, 2, 4, 3)
    assert rig.surplus == [1]
    rig.hold(5)
    assert rig.surplus == [5, 1], "of those that are alike the last"


def test_many_connections_of_one_client_do_not_end_another_s_only_one(rig: Rig) -> None:
    rig.hold(3, is_greedy=False)
    rig.hold(2, 2, 2, 2)
    assert rig.surplus == [3]


def test_what_is_gone_counts_no_more_and_each_spell_is_told_once(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    for spell in range(2):
        rig.hold(6, 6)
        first, second = rig.greedy[-2:]
        for _ in range(2):  # it stands for a while
            assert rig.surplus == [2 * spell + 1]
        rig.held.forget(second)
        assert rig.held.bytes == 6_000_000
        assert rig.surplus == []
        rig.held.forget(first)
    events = [record.event for record in caplog.records]  # type: ignore[attr-defined]
    assert events == ["peers-shed", "peers-kept", "peers-kept"] * 2
