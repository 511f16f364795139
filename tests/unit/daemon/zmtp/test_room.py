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

TIMEOUT_S = 8.0
GREEDY, MODEST = (of_process(uid, uid, 1) for uid in (4_000_001, 4_000_002))


class Rig:
    """Room for 10 MB, 5 for one client and 8.75 for large messages, and connections that hold so many each."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.clock = Clock()
        self.room = Room(10.0, TIMEOUT_S, self.clock)
        self.greedy: list[Connection] = []
        self.modest: list[Connection] = []
        self.peers: dict[Connection, socket.socket] = {}

    def _connect(self, *, is_greedy: bool) -> tuple[Connection, socket.socket]:
        ours, theirs = socket.socketpair()
        self._stack.enter_context(ours)
        self._stack.enter_context(theirs)
        who = GREEDY if is_greedy else MODEST
        connection = Connection(ours, 1, Null(who), who.name, 10_000_000, self.clock())
        (self.greedy if is_greedy else self.modest).append(connection)
        self.peers[connection] = theirs
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
            self.send(connection, 1000)
            found.append(self.room.has_for(connection) or connection in self.room.go_on(self.all))
        return found

    def send(self, connection: Connection, count: int) -> None:
        """So many more bytes of its message come to the kernel."""
        self.peers[connection].sendall(bytes(count))
        connection.may_have_more(has_left=False)
        self.room.waits(connection)

    def read(self, connection: Connection) -> None:
        """All of them are read."""
        assert connection.fill(memoryview(b""))
        self.room.count(connection)

    def sweep(self) -> list[Connection]:
        """A second has gone by."""
        self.clock.now_s += 1.0
        return self.room.sweep()

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
    assert rig.begin(2, 2.5, 3) == [True, True, False]
    _, second, third = rig.greedy
    assert rig.go_on() == []
    rig.end(second)
    assert rig.go_on() == [third]
    assert rig.surplus == []


def test_the_first_of_a_client_s_that_waits_is_not_passed_by_smaller_ones(rig: Rig) -> None:
    assert rig.begin(4, 3, 0.5) == [True, False, False]
    first, second, third = rig.greedy
    rig.end(first)
    assert rig.go_on() == [second, third]


def test_the_first_that_waits_is_not_passed_by_another_client_s_either(rig: Rig) -> None:
    assert rig.begin(4.5) == [True]
    assert rig.begin(3.5, is_greedy=False) == [True]
    rig.hold(2, is_greedy=False)
    assert rig.begin(4) == [False]
    assert rig.begin(0.5, is_greedy=False) == [False]
    rig.end(rig.greedy[0])
    assert rig.go_on() == [], "5.5 are here or promised: 0.5 more would do, and 4 would not"
    rig.end(rig.modest[0])
    assert rig.go_on() == [rig.greedy[0], rig.modest[-1]]


def test_a_small_one_never_waits(rig: Rig) -> None:
    assert rig.begin(4, 3, 0.06) == [True, False, True]


def test_half_the_memory_is_one_client_s_and_the_other_half_at_once_another_s(rig: Rig) -> None:
    assert rig.begin(4.9, 1) == [True, False]
    assert rig.begin(3.8, is_greedy=False) == [True]


def test_one_that_is_larger_than_a_client_s_share_is_read_alone(rig: Rig) -> None:
    assert rig.begin(8, 1) == [True, False]
    rig.end(rig.greedy[0])
    assert rig.go_on() == rig.greedy


def test_where_there_is_no_room_for_any_one_is_read_all_the_same(rig: Rig) -> None:
    rig.hold(2)
    assert rig.begin(9.5) == [True]
    assert rig.begin(9, 6) == [False, False]
    rig.end(rig.greedy[1])
    assert rig.go_on() == [rig.greedy[2]], "one that fits before one that does not"


def test_what_is_nearly_whole_does_not_wait_for_room(rig: Rig) -> None:
    rig.begin(0.1, 4.8)
    nearly, _ = rig.greedy
    rig.send(nearly, 60_000)
    rig.read(nearly)
    rig.room.sweep()
    assert rig.begin(4.9, is_greedy=False) == [False]
    rig.hold(6, is_greedy=False)
    rig.clock.now_s += TIMEOUT_S
    assert nearly in rig.room.sweep()
    rig.send(nearly, 1)
    assert nearly in rig.go_on()


def test_the_client_that_has_least_goes_on_first(rig: Rig) -> None:
    rig.begin(4)
    assert rig.begin(4.5, is_greedy=False) == [True]
    assert rig.begin(1, is_greedy=False) == [False]
    assert rig.begin(1) == [False]
    rig.end(rig.greedy[0])
    assert rig.go_on() == rig.greedy
    rig.end(rig.modest[0])
    assert rig.go_on() == rig.modest


def test_what_is_too_slow_to_end_in_its_time_makes_room_and_goes_to_the_end_of_the_line(rig: Rig) -> None:
    rig.begin(4, 0.4, 3)
    stalled, steady, waiting = rig.greedy
    rig.read(stalled)
    assert rig.sweep() == [], "what has only begun has its chance"
    rig.send(steady, 60_000)
    rig.read(steady)
    assert rig.sweep() == [stalled], "0.4 MB take less than 8 s at 60 kB each"
    assert rig.go_on() == [waiting]
    rig.send(steady, 40_000)
    rig.read(steady)
    assert rig.sweep() == [steady], "and more than that at 40 kB each"
    assert rig.go_on() == [], "neither has sent any more"
    rig.end(waiting)
    rig.send(stalled, 1)
    assert rig.go_on() == [stalled]


def test_nobody_is_too_slow_while_nobody_waits(rig: Rig) -> None:
    rig.begin(4)
    assert [rig.sweep() for _ in range(3)] == [[], [], []]


def test_a_second_message_is_not_compared_with_the_first(rig: Rig) -> None:
    rig.begin(0.1, 4.95)
    first, waiting = rig.greedy
    rig.sweep()
    rig.send(first, 98_000)
    rig.read(first)
    assert first.take() is not None
    rig.room.count(first)
    assert rig.go_on() == [waiting]
    rig.end(waiting)
    rig.peers[first].sendall(frame(bytes(1000), announced=300_000))
    first.may_have_more(has_left=False)
    first.fill(memoryview(bytearray(65_536)))
    assert first.take() is None
    assert rig.room.has_for(first)
    assert rig.begin(4.9) == [False]
    assert rig.sweep() == []


def test_memory_of_one_that_is_read_no_more_is_told_too(rig: Rig) -> None:
    rig.hold(4)
    assert rig.begin(0.5, 2) == [True, False]
    first, _, waiting = rig.greedy
    first.held_bytes = 0  # its last part was small, and came
    rig.room.count(first)
    assert rig.go_on() == [waiting]


def test_the_time_that_one_waits_for_room_is_not_its_own_once_it_has_sent_more(rig: Rig) -> None:
    rig.begin(4, 3)
    first, second = rig.greedy
    rig.clock.now_s += 100.0
    assert rig.room.has_its_time(second)
    assert not rig.room.has_its_time(first)
    rig.end(first)
    assert rig.go_on() == [second]
    assert second.begun_s == rig.clock()


def test_the_time_in_which_it_sent_nothing_is_its_own(rig: Rig) -> None:
    rig.begin(4, 3)
    stalled, other = rig.greedy
    rig.read(stalled)
    begun_s = stalled.begun_s
    rig.sweep()
    assert rig.sweep() == [stalled]
    rig.clock.now_s += 5.0
    assert not rig.room.has_its_time(stalled)
    rig.send(stalled, 1)
    rig.clock.now_s += 3.0
    assert rig.go_on() == [other]
    rig.end(other)
    assert rig.go_on() == [stalled]
    assert stalled.begun_s == (begun_s or 0.0) + 3.0


def test_that_some_wait_is_told_once_a_minute(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    rig.begin(4, 3, 2)
    rig.clock.now_s += TELL_EVERY_S
    rig.begin(1)
    events = [record.event for record in caplog.records]  # type: ignore[attr-defined]
    assert events == ["peers-wait"] * 2


def test_no_idle_one_is_hung_up_on_for_a_heavy_one(rig: Rig) -> None:
    rig.begin(9)
    rig.greedy[0].held_bytes = 8_000_000
    rig.room.count(rig.greedy[0])
    rig.hold(0, 0, 0.1, 3)
    assert rig.surplus == [0]


def test_nothing_is_left_of_those_that_are_gone(rig: Rig) -> None:
    rig.begin(4, 3, 0.5)
    rig.sweep()
    for connection in rig.all:
        rig.end(connection)
    assert (rig.room.bytes, rig.room.promised_bytes) == (0, 0)
    assert not rig.room.does_somebody_wait
    assert rig.go_on() == []
