"""One call of the server: what it does is bounded, however much comes, and nobody is hung up on for its own pause."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from jetsel.config import Server as Limits
from jetsel.daemon.zmtp import places
from jetsel.daemon.zmtp.connection import FRAME_COST_BYTES, FRAMES_AT_ONCE, MOST_COMMANDS
from jetsel.daemon.zmtp.entrance import ENTRIES
from jetsel.daemon.zmtp.mechanism import Null
from jetsel.daemon.zmtp.server import PER_TURN, SWEEPS, TURNS
from tests.system.raw import greeting, hung_up
from tests.system.raw import ready as asks
from tests.system.sealed import take_frame
from tests.unit.daemon.zmtp.rig import ALL, Rig

REQUEST = b"\x00\x02{}"


@pytest.fixture
def limits() -> Limits:
    return Limits(peer_timeout_s=8.0)


@pytest.fixture
def rig(tmp_path_factory: pytest.TempPathFactory, limits: Limits) -> Iterator[Rig]:
    with ExitStack() as stack:
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(tmp_path_factory.mktemp("zmtp") / "socket"))
        listening.listen(4 * ENTRIES)
        yield Rig(stack, listening, limits)


def test_no_more_are_let_in_at_once_than_leave_others_their_turn(rig: Rig) -> None:
    for _ in range(2 * ENTRIES + 1):
        rig.connect()
    for count in (ENTRIES, 2 * ENTRIES):
        rig.receive()
        assert rig.server.clients == count
        assert rig.server.has_more
    rig.receive_all()
    assert rig.server.clients == 2 * ENTRIES + 1


@pytest.mark.parametrize("limits", [Limits(client_connections=1)])
def test_those_that_are_hung_up_on_at_once_count_too(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "TRUSTED", frozenset())  # the owner's connections have no limit
    peers = [rig.connect() for _ in range(2 * ENTRIES)]
    rig.receive()
    assert rig.server.has_more
    peers[ENTRIES].setblocking(False)
    with pytest.raises(BlockingIOError):
        peers[ENTRIES].recv(1)  # nobody has looked at it yet
    rig.receive_all()
    assert rig.server.clients == 1
    peers[ENTRIES].setblocking(True)
    assert hung_up(peers[ENTRIES])


def test_no_more_peers_are_read_at_once_than_leave_others_their_turn(rig: Rig) -> None:
    peers = [rig.connect(greeting() + asks()) for _ in range(TURNS + 10)]
    rig.receive_all()
    for peer in peers:
        peer.sendall(REQUEST)
    assert len(rig.receive()) == TURNS
    assert rig.server.has_more
    assert rig.receive_all() == 10


def test_a_peer_s_many_messages_come_after_each_other_peer_s_first(rig: Rig) -> None:
    greedy, modest = (rig.connect(greeting() + asks()) for _ in range(2))
    rig.receive_all()
    greedy.sendall(REQUEST * 1000)
    modest.sendall(REQUEST)
    tokens = [token for token, _, _ in rig.receive()]
    assert len(set(tokens[: PER_TURN + 1])) == 2


def test_who_sends_commands_without_end_is_hung_up_on_and_the_next_is_read(rig: Rig) -> None:
    flooding, asking = rig.connect(greeting() + asks()), rig.connect(greeting() + asks())
    rig.receive_all()
    asking.sendall(REQUEST)
    flooding.sendall(b"\x04\x00" * 30_000)
    assert rig.receive_all() == 1
    assert hung_up(flooding)
    assert rig.server.clients == 1


def test_frames_that_are_no_messages_are_left_for_a_later_turn(rig: Rig) -> None:
    peers = [rig.connect(greeting() + asks()) for _ in range(20)]
    rig.receive_all()
    for peer in peers:
        peer.sendall(b"\x04\x00" * MOST_COMMANDS)
    calls = 0
    while True:
        assert rig.server.receive(ALL, 100 * FRAME_COST_BYTES) == []
        calls += 1
        rig.hear()
        if not rig.server.has_more:
            break
    assert calls > 20 * MOST_COMMANDS // (2 * FRAMES_AT_ONCE), "a call is over once two peers had their turns"
    assert rig.server.clients == 20


def test_a_heartbeat_each_second_is_none_too_many(rig: Rig) -> None:
    peer = rig.connect(greeting() + asks())
    rig.receive_all()
    assert peer.recv(len(Null.greeting), socket.MSG_WAITALL)
    assert take_frame(peer)[:6] == b"\x05READY"
    for _ in range(1500):
        peer.sendall(b"\x04\x09\x04PING\0\0ab")
        rig.clock.now_s += 1.0
        assert rig.receive_all() == 0
        assert peer.recv(100) == b"\x04\x07\x04PONGab"


def test_a_peer_that_ended_its_message_while_the_daemon_stood_still_is_heard(rig: Rig) -> None:
    slow, stalled = (rig.connect(greeting() + asks() + REQUEST[:3]) for _ in range(2))
    rig.receive_all()
    rig.clock.now_s += 1000.0
    slow.sendall(REQUEST[3:])
    assert rig.receive_all() == 1
    assert rig.server.clients == 1
    assert hung_up(stalled)


def test_who_owes_the_rest_of_a_message_has_its_time_and_no_more(rig: Rig, limits: Limits) -> None:
    peer = rig.connect(greeting() + asks() + REQUEST[:3])
    rig.receive_all()
    rig.clock.now_s += limits.peer_timeout_s
    rig.receive_all()
    assert rig.server.clients == 1
    rig.clock.now_s += limits.peer_timeout_s / SWEEPS
    rig.receive_all()
    assert rig.server.clients == 0
    assert hung_up(peer)
