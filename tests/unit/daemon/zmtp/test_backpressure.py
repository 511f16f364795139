"""More at once than may be held: peers wait, each for a bounded time, and lose nothing."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from jetsel.config import Server as Limits
from jetsel.daemon.zmtp.server import SWEEPS
from tests.system.raw import frame, hung_up, message
from tests.unit.daemon.zmtp.rig import Rig

LIMITS = Limits(peers_mb=1, peer_timeout_s=8.0)
SWEEP_S = min(1.0, LIMITS.peer_timeout_s / SWEEPS)
BODY = bytes(100_000)
LARGE = frame(BODY + BODY[:90_000])
HEAD = 20_000
AT_ONCE = 5  # of such messages there is room for


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


def test_four_times_as_much_as_there_is_room_for_is_all_answered(rig: Rig) -> None:
    peers = rig.greet(4 * AT_ONCE)
    begin(rig, peers)
    assert rig.server.held_bytes < 1_000_000
    assert rig.server.held_bytes + rig.server.promised_bytes <= 1_000_000
    end(peers)
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


def test_small_messages_of_others_do_not_wait(rig: Rig) -> None:
    begin(rig, rig.greet(2 * AT_ONCE))
    (other,) = rig.greet(1)
    other.sendall(message(b"{}"))
    assert rig.receive_all() == 1


def test_the_time_of_one_that_waits_for_room_does_not_pass(rig: Rig) -> None:
    slow, waiting = rig.greet(AT_ONCE), rig.greet(1)
    begin(rig, slow)
    begin(rig, waiting)
    end(waiting)
    for _ in range(int(LIMITS.peer_timeout_s / SWEEP_S)):
        rig.clock.now_s += SWEEP_S
        for peer in slow:
            peer.sendall(b"x")
        assert rig.receive_all() == 0
    rig.clock.now_s += SWEEP_S
    assert rig.receive_all() == 1
    assert all(hung_up(peer) for peer in slow), "they had all of their time"
    assert rig.server.clients == 1


def test_those_that_hang_up_while_they_wait_leave_nothing(rig: Rig) -> None:
    first, others = rig.greet(AT_ONCE), rig.greet(AT_ONCE)
    begin(rig, first)
    begin(rig, others)
    for peer in others:
        peer.close()
    end(first)
    assert rig.receive_all() == len(first)
    assert rig.server.clients == len(first)
    assert (rig.server.held_bytes, rig.server.promised_bytes) == (0, 0)
    for peer in first:
        peer.close()
    rig.receive_all()
    assert rig.server.clients == 0
