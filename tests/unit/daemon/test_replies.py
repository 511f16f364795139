"""Replies that find no reader: tried again while there is hope, counted as lost after it, and in nobody else's way."""

from __future__ import annotations

import itertools

import pytest
import zmq

from jetsel.daemon.message import Route
from jetsel.daemon.port import Port
from jetsel.daemon.zmtp import late
from tests.unit.daemon.ports import IPC, LIMIT_S, TCP, Connect, received, served


def test_replies_to_a_peer_that_is_gone_are_counted(port: Port, connect: Connect) -> None:
    gone, other = connect(), connect()
    gone.send(b"{}")
    (message,) = received(port, 1)
    gone.close(linger=0)
    for number in itertools.count():
        port.send(message.route, b"answer")
        if port.lost_replies:
            break
        other.send(b"{}")  # a round trip of another peer lets ZeroMQ notice
        port.send(received(port, 1)[0].route, b"answer")
        assert other.recv() == b"answer"
        assert number < 10_000
    other.send(b"{}")
    port.send(received(port, 1)[0].route, b"answer")
    assert other.recv() == b"answer"


def test_a_route_that_never_was_is_counted(port: Port) -> None:
    port.send(Route(12, False), b"answer")
    assert port.lost_replies == 1


LARGE = b"x" * 200_000


def slow_peer(port: Port, connect: Connect, over: str) -> tuple[zmq.Socket[bytes], Route]:
    """A peer that has asked, and that takes hardly anything until it reads."""
    peer = connect(endpoint=IPC if over == "ipc" else TCP, RCVHWM=1, RCVBUF=4096)
    peer.send(b"{}")
    return peer, received(port, 1)[0].route


@pytest.mark.parametrize("over", ["ipc", "tcp", "keys"])
def test_a_slow_peer_gets_every_reply_once_it_reads(
    port: Port, connect: Connect, monkeypatch: pytest.MonkeyPatch, over: str
) -> None:
    monkeypatch.setattr(late, "PATIENCE_S", LIMIT_S)
    peer, route = slow_peer(port, connect, over)
    with served(port, lambda message: port.send(message.route, b"pong")):
        other = connect()
        other.send(b"ping")
        assert other.recv() == b"pong"  # the leader sleeps again: nothing but the late replies can rouse it
        for number in range(100):
            port.send(route, LARGE + b"%d" % number)
            port.wake()
        seen = {peer.recv()[len(LARGE) :] for _ in range(100)}
        assert seen == {b"%d" % number for number in range(100)}
    assert port.lost_replies == 0


@pytest.mark.parametrize("over", ["ipc", "tcp", "keys"])
def test_while_replies_wait_for_one_peer_the_others_are_answered(
    port: Port, connect: Connect, monkeypatch: pytest.MonkeyPatch, over: str
) -> None:
    monkeypatch.setattr(late, "PATIENCE_S", LIMIT_S)
    _, route = slow_peer(port, connect, over)
    for _ in range(100):
        port.send(route, LARGE)
    with served(port, lambda message: port.send(message.route, b"pong")):
        other = connect()
        for _ in range(50):
            other.send(b"ping")
            assert other.recv() == b"pong"


@pytest.mark.parametrize("over", ["ipc", "tcp", "keys"])
def test_patience_ends_and_what_is_lost_is_counted(
    port: Port, connect: Connect, monkeypatch: pytest.MonkeyPatch, over: str
) -> None:
    monkeypatch.setattr(late, "PATIENCE_S", 0.0)
    peer, route = slow_peer(port, connect, over)
    for _ in range(100):
        port.send(route, LARGE)
    port.receive(1)
    lost = port.lost_replies
    assert 0 < lost < 100
    with served(port, lambda _: None):  # what has begun is sent to its end
        for _ in range(100 - lost):
            assert peer.recv() == LARGE
    peer.setsockopt(zmq.RCVTIMEO, 0)
    with pytest.raises(zmq.Again):
        peer.recv()


@pytest.mark.parametrize("over", ["ipc", "tcp", "keys"])
def test_no_more_replies_are_kept_than_the_limit(
    port: Port, connect: Connect, monkeypatch: pytest.MonkeyPatch, over: str
) -> None:
    monkeypatch.setattr(late, "PATIENCE_S", LIMIT_S)
    monkeypatch.setattr(late, "MOST", 5)
    peer, route = slow_peer(port, connect, over)
    for _ in range(100):
        port.send(route, LARGE)
    lost = port.lost_replies
    assert 0 < lost < 95
    with served(port, lambda _: None):
        for _ in range(100 - lost):
            assert peer.recv() == LARGE
    assert port.lost_replies == lost


@pytest.mark.parametrize("over", ["ipc", "tcp", "keys"])
def test_one_peer_does_not_take_the_room_of_all_late_replies(
    port: Port, connect: Connect, monkeypatch: pytest.MonkeyPatch, over: str
) -> None:
    monkeypatch.setattr(late, "PATIENCE_S", LIMIT_S)
    monkeypatch.setattr(late, "MOST_OF_ONE", 5)
    (greedy, its_route), (modest, route) = slow_peer(port, connect, over), slow_peer(port, connect, over)
    for _ in range(100):
        port.send(its_route, LARGE)
    its_lost = port.lost_replies
    assert 0 < its_lost < 95
    for _ in range(10):
        port.send(route, LARGE)
    assert port.lost_replies <= its_lost + 5, "what the kernel does not take of ten waits, up to five"
    with served(port, lambda _: None):
        for _ in range(5):
            assert modest.recv() == LARGE
        for _ in range(100 - its_lost):
            assert greedy.recv() == LARGE
    for _ in range(10):  # those that it took in time make room again
        port.send(its_route, LARGE)
        with served(port, lambda _: None):
            assert greedy.recv() == LARGE
