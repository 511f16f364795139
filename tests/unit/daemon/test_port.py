"""The daemon's ROUTER socket with real peers: nothing is lost, slept over, or sent to nobody uncounted."""

import contextlib
import os
import socket
import threading
from pathlib import Path

import pytest
import zmq

from jetsel.base.config import ServerSettings
from jetsel.daemon import port as port_module
from jetsel.daemon.identity import UserIdentity
from jetsel.daemon.port import MOST_ENVELOPE_BYTES, Message, Port, Route
from tests.system.raw import frame, greeting, hung_up, reach, ready
from tests.unit.daemon.ports import LIMIT_S, LONG_S, Connect, received, served
from tests.waiting import until

HELLO = greeting() + ready()
LARGE = b"x" * 200_000


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_peer_is_known_by_what_the_kernel_says_whatever_it_says_of_itself(port: Port) -> None:
    messages: list[Message] = []
    with served(port, messages.append), reach(port.endpoints[0]) as peer:
        peer.sendall(greeting() + ready(User_Id=b"0", Identity=b"uid 0") + b"\x00\x02{}")
        until(lambda: messages)
    assert messages[0].sender == UserIdentity(os.getuid(), os.getgid())
    assert messages[0].sender.name == f"uid {os.getuid()}"


@pytest.mark.parametrize(
    ("sent", "frames", "envelope"),
    [
        ([b"{}"], [b"{}"], ()),
        ([b"{}", b""], [b"{}", b""], ()),  # an empty image
        ([b"", b"{}", b"image"], [b"{}", b"image"], (b"",)),  # REQ
        ([b"", b"{}", b""], [b"{}", b""], (b"",)),
        ([b"\0\0\0\1", b"", b"{}"], [b"{}"], (b"\0\0\0\1", b"")),  # REQ with ZMQ_REQ_CORRELATE
        ([b"\0peer", b"hop", b"", b"{}", b"image"], [b"{}", b"image"], (b"\0peer", b"hop", b"")),  # behind two proxies
        ([b"%d" % i for i in range(20)], [b"%d" % i for i in range(20)], ()),
        ([bytes(MOST_ENVELOPE_BYTES + 1), b"", b"{}"], [bytes(MOST_ENVELOPE_BYTES + 1), b"", b"{}"], ()),
    ],
)
def test_a_reply_goes_back_with_the_envelope_that_its_request_came_in(
    port: Port, connect: Connect, sent: list[bytes], frames: list[bytes], envelope: tuple[bytes, ...]
) -> None:
    peer = connect()
    peer.send_multipart(sent)
    (message,) = received(port, 1)
    assert [bytes(frame) for frame in message.frames] == frames
    assert message.route.envelope == envelope
    port.send(message.route, b"answer")
    assert peer.recv_multipart() == [*envelope, b"answer"]


@pytest.mark.parametrize("threads", [1, 3])
def test_no_request_is_slept_over(port: Port, connect: Connect, threads: int) -> None:
    peers = [connect(), connect()]
    with served(port, lambda message: port.send(message.route, b"pong"), threads):
        for number in range(300):
            peer, other = peers[number % 2], peers[1 - number % 2]
            peer.send(b"ping")
            other.send(b"ping")
            assert peer.recv() == other.recv() == b"pong"


@pytest.mark.parametrize("is_open", [False, True])
def test_who_hangs_up_behind_its_request_leaves_its_place(port: Port, is_open: bool) -> None:
    messages: list[Message] = []
    before = descriptors()
    with served(port, messages.append):
        for count in range(1, 101):
            with reach(port.endpoints[0]) as peer:
                peer.sendall(HELLO)
                if is_open:
                    assert peer.recv(70, socket.MSG_WAITALL)
                peer.sendall(b"\x00\x02{}")
            until(lambda: descriptors() <= before)  # others' may be closed meanwhile
            if is_open:  # who was greeted is heard to its end
                until(lambda: len(messages) == count)  # noqa: B023


def test_each_wake_rouses_one_of_several_sleepers_before_its_wait_or_in_it(port: Port) -> None:
    roused = threading.Semaphore(0)

    def rest() -> None:
        assert port.receive(LONG_S) == []
        roused.release()

    port.wake()
    sleepers = [threading.Thread(target=rest, daemon=True) for _ in range(3)]
    for thread in sleepers:
        thread.start()
    assert roused.acquire(timeout=LIMIT_S)
    for _ in sleepers[1:]:
        port.wake()
        assert roused.acquire(timeout=LIMIT_S)
    for thread in sleepers:
        thread.join(LIMIT_S)
        assert not thread.is_alive()


def test_a_peer_that_sends_without_a_pause_leaves_others_their_turn(port: Port) -> None:
    with reach(port.endpoints[0]) as greedy, reach(port.endpoints[0]) as modest:
        greedy.sendall(HELLO + b"\x00\x02{}" * 20_000)
        modest.sendall(HELLO + b"\x00\x02{}")
        routes = until(lambda: [message.route.connection for message in port.receive(0.0) or []])
        while len(set(routes)) == 1:
            routes += [message.route.connection for message in port.receive(LONG_S) or []]
        assert len(routes) < 20_001, "before all of the other's"


@pytest.mark.parametrize("limits", [ServerSettings(max_clients=64 + 5)])
def test_no_more_clients_are_let_in_than_may_be_and_the_next_when_one_leaves(port: Port) -> None:
    before = descriptors()
    with served(port, lambda message: port.send(message.route, b"pong")), contextlib.ExitStack() as stack:
        peers = [stack.enter_context(reach(port.endpoints[0])) for _ in range(64 + 6)]
        until(lambda: descriptors() == before + len(peers) + 64 + 5)
        last = peers.pop()
        last.sendall(HELLO + b"\x00\x02{}")
        last.settimeout(0.0)
        with pytest.raises(BlockingIOError):
            last.recv(1)
        peers[0].close()
        last.settimeout(LIMIT_S)
        assert last.recv(64, socket.MSG_WAITALL) == greeting()


@pytest.mark.parametrize("limits", [ServerSettings(peers_mb=2, max_image_mb=1)])
def test_where_unfinished_messages_fill_the_memory_whoever_holds_most_is_hung_up_on(port: Port) -> None:
    with served(port, lambda message: port.send(message.route, b"pong")), contextlib.ExitStack() as stack:
        peers = [stack.enter_context(reach(port.endpoints[0])) for _ in range(4)]
        held = (250_000, 990_000, 520_000, 540_000)
        assert sum(held) - len(held) * port_module.COUNTED_BYTES > 2_000_000, "though not all is counted yet"
        for peer, size in zip(peers, held, strict=True):
            peer.sendall(HELLO + frame(bytes(size), announced=1_000_000))
        assert hung_up(peers[1])
        for peer, size in ((peers[3], 460_000), (peers[2], 480_000), (peers[0], 750_000)):
            peer.settimeout(LIMIT_S)
            peer.sendall(bytes(size))
            until(lambda peer=peer: b"pong" in peer.recv(1000))  # type: ignore[misc]


def slow_peer(port: Port, connect: Connect) -> tuple[zmq.Socket[bytes], Route]:
    """A peer that has asked, and that takes hardly anything until it reads."""
    peer = connect(RCVHWM=1, RCVBUF=4096)
    peer.send(b"{}")
    return peer, received(port, 1)[0].route


def test_a_slow_peer_gets_every_reply_once_it_reads_and_others_are_answered_meanwhile(
    port: Port, connect: Connect
) -> None:
    peer, route = slow_peer(port, connect)
    with served(port, lambda message: port.send(message.route, b"pong")):
        for number in range(100):
            port.send(route, LARGE + b"%d" % number)
        assert not port.is_quiet
        other = connect()
        for _ in range(50):
            other.send(b"ping")
            assert other.recv() == b"pong"
        assert [peer.recv()[len(LARGE) :] for _ in range(100)] == [b"%d" % number for number in range(100)]
        until(lambda: port.is_quiet)
    assert port.lost_replies == 0


def test_who_does_not_read_is_hung_up_on_past_a_bound_in_bytes(
    port: Port, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(port_module, "UNREAD_BYTES", 2_000_000)
    _, route = slow_peer(port, connect)
    for _ in range(100):
        port.send(route, LARGE)
    assert port.lost_replies > 80, "what was kept for it is lost, and what was to come"
    assert port.is_quiet
