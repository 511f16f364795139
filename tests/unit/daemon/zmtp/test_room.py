"""Whose messages take too much memory: who waits for room, and which connections are ended."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from jetsel.daemon.identity import of_process
from jetsel.daemon.zmtp.connection import Connection
from jetsel.daemon.zmtp.mechanism import Null
from jetsel.daemon.zmtp.room import TELL_EVERY_S, Room
from tests.system.raw import frame, greeting, ready
from tests.unit.daemon.clock import Clock

GREEDY, MODEST = (of_process(uid, uid, 1) for uid in (4_000_001, 4_000_002))


class Rig:
    """Room for 10 MB, and connections that hold so many each."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.clock = Clock()
        self.room = Room(10.0, self.clock)
        self.greedy: list[Connection] = []
        self.modest: list[Connection] = []

    def _connect(self, *, is_greedy: bool) -> tuple[Connection, socket.socket]:
        ours, theirs = socket.socketpair()
        self._stack.enter_context(ours)
        self._stack.enter_context(theirs)
        who = GREEDY if is_greedy else MODEST
        connection = Connection(ours, 1, Null(who), who.name, 10_000_000, self.clock())
        (self.greedy if is_greedy else self.modest).append(connection)
        return connection, theirs

    def hold(self, *megabytes: float, is_greedy: bool = True) -> None:
        for each in megabytes:
            connection, _ = self._connect(is_greedy=is_greedy)
            connection.held_bytes = int(each * 1e6)
            self.room.count(connection)

    def begin(self, *megabytes: float, is_greedy: bool = True) -> list[bool]:
        """Messages of which the first kilobyte has come, and more waits in the kernel; which of them are read on."""
        found = []
        for each in megabytes:
            connection, peer = self._connect(is_greedy=is_greedy)
            peer.sendall(greeting() + ready() + frame(bytes(1000), announced=int(each * 1e6)))
            connection.fill(memoryview(bytearray(65_536)))
            assert connection.take() is None
            peer.sendall(bytes(1000))
            connection.may_have_more(has_left=False)
            found.append(self.room.has_for(connection, self.all))
        return found

    @property
    def all(self) -> list[Connection]:
        return [*self.modest, *self.greedy]

    def end(self, connection: Connection) -> None:
        """Its message is whole, or it is gone: either leaves room."""
        self.room.forget(connection)
        (self.greedy if connection in self.greedy else self.modest).remove(connection)

    def go_on(self) -> list[Connection]:
        return self.room.go_on(self.all)

    @property
    def surplus(self) -> list[int]:
        """The numbers of the greedy one's connections that are ended; nobody else's may be."""
        return [self.greedy.index(each) for each in self.room.surplus(self.all)]


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
        rig.room.forget(second)
        assert rig.room.bytes == 6_000_000
        assert rig.surplus == []
        rig.room.forget(first)
    events = [record.event for record in caplog.records]  # type: ignore[attr-defined]
    assert events == ["peers-shed", "peers-kept", "peers-kept"] * 2


def test_messages_for_which_there_is_no_room_wait_until_others_are_whole(rig: Rig) -> None:
    assert rig.begin(4, 5, 3, 2) == [True, True, False, False]
    _, second, third, fourth = rig.greedy
    assert rig.go_on() == []
    rig.end(second)
    assert rig.go_on() == [third, fourth]
    assert rig.surplus == []


def test_the_first_that_waits_is_not_passed_by_smaller_ones(rig: Rig) -> None:
    rig.begin(9, 8, 1.5)
    assert rig.begin(0.5) == [True], "what there is room for does not wait"
    first, second, third, fourth = rig.greedy
    rig.end(fourth)
    assert rig.go_on() == []
    rig.end(first)
    assert rig.go_on() == [second, third]


def test_where_there_is_no_room_for_all_of_it_one_is_read_all_the_same(rig: Rig) -> None:
    assert rig.begin(9.9) == [True]
    rig.hold(1)
    assert rig.begin(9.5) == [False]
    first, _, third = rig.greedy
    rig.end(first)
    assert rig.go_on() == [third]


def test_one_of_whoever_has_most_waits_for_another_client_s(rig: Rig) -> None:
    assert rig.begin(2, 2, 3, 2) == [True] * 4
    assert rig.begin(5, is_greedy=False) == [True]
    waiting = [connection for connection in rig.greedy if rig.room.waits(connection)]
    assert waiting == [rig.greedy[2], rig.greedy[3]], "the last that have begun"
    assert rig.begin(5, is_greedy=False) == [False], "now that one has most"


def test_the_client_that_has_least_goes_on_first(rig: Rig) -> None:
    rig.begin(9)
    rig.hold(0.1)
    assert rig.begin(7) == [False]
    assert rig.begin(9.5, is_greedy=False) == [False]
    first, _, second = rig.greedy
    rig.end(first)
    assert rig.go_on() == rig.modest
    rig.end(rig.modest[0])
    assert rig.go_on() == [second]


def test_what_stalls_makes_room_and_goes_on_when_it_has_sent_more(rig: Rig) -> None:
    rig.begin(5, 4.9, 7)
    stalled, slow, waiting = rig.greedy
    rig.room.sweep(())
    for connection in (stalled, slow):
        assert connection.fill(memoryview(b"")) == 1000
    rig.room.count(slow)
    assert not stalled.may_have_unread
    rig.room.sweep(())
    assert rig.go_on() == [], "what moves keeps its room"
    rig.room.sweep((slow.fd,))
    assert rig.go_on() == [], "what is to be read has not stalled"
    rig.room.sweep(())
    assert rig.go_on() == [waiting]
    stalled.may_have_more(has_left=False)
    assert rig.room.waits(stalled)
    assert rig.go_on() == []
    rig.end(waiting)
    assert rig.go_on() == [stalled]


def test_the_time_that_one_waits_for_room_is_not_its_own(rig: Rig) -> None:
    rig.begin(9, 8)
    first, second = rig.greedy
    rig.clock.now_s += 100.0
    assert rig.room.has_its_time(second)
    assert not rig.room.has_its_time(first)
    rig.end(first)
    assert rig.go_on() == [second]
    assert second.begun_s == rig.clock()


def test_that_some_wait_is_told_once_a_minute(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    rig.begin(9, 8, 7)
    rig.clock.now_s += TELL_EVERY_S
    rig.begin(6)
    events = [record.event for record in caplog.records]  # type: ignore[attr-defined]
    assert events == ["peers-wait"] * 2


def test_nothing_is_left_of_those_that_are_gone(rig: Rig) -> None:
    rig.begin(9, 8, 0.5)
    for connection in rig.all:
        rig.end(connection)
    assert (rig.room.bytes, rig.room.promised_bytes) == (0, 0)
    assert rig.go_on() == []
