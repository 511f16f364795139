"""More at once than may be held: peers wait, each for a bounded time, and lose nothing."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from jetsel.config import Server as Limits
from jetsel.daemon.zmtp.server import SWEEPS
from jetsel.daemon.zmtp.wire import MORE, framed
from tests.system.raw import frame, message
from tests.unit.daemon.zmtp.rig import Rig

LIMITS = Limits(peers_mb=1, peer_timeout_s=8.0)
SWEEP_S = min(1.0, LIMITS.peer_timeout_s / SWEEPS)
BODY = bytes(190_000)
LARGE = frame(BODY)
HEAD = 20_000
AT_ONCE = 2  # of such messages of one client there is room for: half of the memory is another's


@pytest.fixture
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with ExitStack() as stack:
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(tmp_path_factory.mktemp("zmtp") / "socket"))
        listening.listen(64)
        yield Rig(stack, listening, LIMITS)


def begin(rig: Rig, peers: list[socket.socket], length: int = HEAD) -> None:
    for peer in peers:
        peer.sendall(LARGE[:length])
    assert rig.receive_all() == 0


def end(peers: list[socket.socket], sent: int = HEAD) -> None:
    for peer in peers:
        peer.sendall(LARGE[sent:])


@pytest.mark.parametrize("head", [10, 1_000, HEAD, 90_000])
def test_many_times_as_much_as_there_is_room_for_is_all_answered(rig: Rig, head: int) -> None:
    peers = rig.greet(20 * AT_ONCE)
    begin(rig, peers, head)
    assert rig.server.held_bytes + rig.server.promised_bytes <= 1_000_000
    end(peers, head)
    assert rig.receive_all() == len(peers)
    assert rig.server.clients == len(peers)
    assert (rig.server.held_bytes, rig.server.promised_bytes) == (0, 0)


def test_who_waits_is_answered_though_those_before_it_stall(rig: Rig) -> None:
    stalled, other = rig.greet(AT_ONCE), rig.greet(1)
    begin(rig, stalled, 20)
    begin(rig, other)
    end(other)
    assert rig.receive_all() == 0
    for _ in range(2):
        rig.clock.now_s += SWEEP_S
        count = rig.receive_all()
    assert count == 1
    end(stalled, 20)
    assert rig.receive_all() == len(stalled), "they were only slow"


def test_who_waits_is_answered_though_those_before_it_send_a_byte_a_second(rig: Rig) -> None:
    slow, other = rig.greet(AT_ONCE), rig.greet(1)
    begin(rig, slow)
    begin(rig, other)
    end(other)
    count = 0
    for _ in range(2):
        rig.clock.now_s += SWEEP_S
        for peer in slow:
            peer.sendall(b"x")
        count += rig.receive_all()
    assert count == 1


def test_one_that_sends_one_message_behind_another_passes_nobody(rig: Rig) -> None:
    busy, others = rig.greet(AT_ONCE), rig.greet(1)
    begin(rig, busy)
    begin(rig, others)
    end(others)
    for peer in busy:
        peer.sendall(LARGE[HEAD:] + LARGE[:HEAD])
    assert rig.receive_all() == AT_ONCE + 1
    assert rig.server.clients == AT_ONCE + 1


def test_small_messages_of_others_do_not_wait(rig: Rig) -> None:
    begin(rig, rig.greet(2 * AT_ONCE))
    (other,) = rig.greet(1)
    other.sendall(message(bytes(7_000)))
    assert rig.receive_all() == 1


def test_what_is_left_of_a_message_makes_room_when_it_comes(rig: Rig) -> None:
    (two_parts, *others) = rig.greet(3)
    two_parts.sendall(framed(MORE, BODY[:150_000]))
    assert rig.receive_all() == 0
    begin(rig, others)
    end(others[1:])
    assert rig.receive_all() == 0
    two_parts.sendall(framed(0, b"{}"))
    assert rig.receive_all() == 2


def test_the_time_of_one_that_waits_for_room_does_not_pass(rig: Rig) -> None:
    slow, (waiting,) = rig.greet(AT_ONCE), rig.greet(1)
    begin(rig, slow)
    begin(rig, [waiting])
    waiting.sendall(LARGE[HEAD : 2 * HEAD])
    sent = HEAD
    while sent < len(LARGE):
        rig.clock.now_s += SWEEP_S
        for peer in slow:
            peer.sendall(LARGE[sent : sent + 25_000])
        sent += 25_000
        count = rig.receive_all()
    assert count == len(slow), "they ended just in time"
    rig.clock.now_s += LIMITS.peer_timeout_s - SWEEP_S
    assert rig.receive_all() == 0
    waiting.sendall(LARGE[2 * HEAD :])
    assert rig.receive_all() == 1


def test_more_of_what_waits_is_looked_at_once(rig: Rig) -> None:
    begin(rig, rig.greet(AT_ONCE))
    (waiting,) = rig.greet(1)
    begin(rig, [waiting])
    for _ in range(3):
        waiting.sendall(b"x")
        rig.hear()
        assert not rig.server.has_more


def test_a_daemon_is_not_quiet_while_a_message_waits(rig: Rig) -> None:
    begin(rig, rig.greet(AT_ONCE))
    (waiting,) = rig.greet(1)
    begin(rig, [waiting])
    assert rig.server.is_quiet, "half a message is nothing to be answered"
    end([waiting])
    rig.hear()
    assert not rig.server.is_quiet


def test_those_that_hang_up_while_they_wait_leave_their_places_at_once(rig: Rig) -> None:
    first, others = rig.greet(AT_ONCE), rig.greet(AT_ONCE)
    begin(rig, first)
    begin(rig, others)
    for peer in others:
        peer.sendall(b"x")
        peer.close()
    rig.receive_all()
    assert rig.server.clients == len(first)
    end(first)
    assert rig.receive_all() == len(first)
    assert (rig.server.held_bytes, rig.server.promised_bytes) == (0, 0)
