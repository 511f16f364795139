"""The ROUTER socket with real peers: nothing is lost, slept over, or sent to nobody uncounted."""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq

from jetsel.daemon import port as port_module
from jetsel.daemon.listener import Listener
from jetsel.daemon.port import Message, Port, Route, parse_peer_address

LIMIT_S = 60.0  # how long a test waits for what must come; it comes at once
LONG_MS = 1_000_000  # a wait that only a message or a wake ends within a test


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (":1000:100:4242", (1000, 100, 4242)),
        ("localhost:0:0:1", (0, 0, 1)),
        ("127.0.0.1", None),
        ("127.0.0.1:5555", None),
        ("127.0.0.1:0:0:1", None),
        ("::1", None),
        ("::ffff:127.0.0.1", None),
        ("fe80::1:2:3", None),
        (":0:0:", None),
        (":0:0:-1", None),
        (":0:0:1:2", None),
        (":a:0:1", None),
        ("", None),
    ],
)
def test_a_peer_s_address_is_credentials_only_where_the_kernel_wrote_them(
    address: str, expected: tuple[int, int, int] | None
) -> None:
    assert parse_peer_address(address) == expected


@pytest.fixture
def port(tmp_path: Path) -> Iterator[Port]:
    """A port on an ipc path and on loopback."""
    listener = Listener(tmp_path / "j.sock", None)
    opened = Port(listener, "tcp://127.0.0.1:0", 1_000_000)
    yield opened
    opened.close()
    listener.close()


Connect = Callable[..., "zmq.Socket[bytes]"]


@pytest.fixture
def connect(port: Port) -> Iterator[Connect]:
    """Peers that close with the test."""
    context = zmq.Context()
    peers: list[zmq.Socket[bytes]] = []

    def begin(kind: int = zmq.DEALER, endpoint: int = 0, **options: int) -> zmq.Socket[bytes]:
        peer = context.socket(kind)
        peer.setsockopt(zmq.RCVTIMEO, int(LIMIT_S * 1e3))
        for name, value in options.items():
            peer.setsockopt(getattr(zmq, name), value)
        peer.connect(port.endpoints[endpoint])
        peers.append(peer)
        return peer

    yield begin
    for peer in peers:
        peer.close(linger=0)
    context.term()


def received(port: Port, count: int) -> list[Message]:
    """The next messages; fails where they do not come."""
    found: list[Message] = []

    def take() -> None:
        while len(found) < count:
            port.wait(LONG_MS)
            found.extend(port.receive(count - len(found)))

    taker = threading.Thread(target=take, daemon=True)
    taker.start()
    taker.join(LIMIT_S)
    assert not taker.is_alive(), f"{len(found)} of {count} messages came"
    return found


@contextlib.contextmanager
def served(port: Port, answer: Callable[[Message], None]) -> Iterator[None]:
    """A thread at the socket that hands every message on, and that nothing but a message or a wake rouses."""
    stopping = threading.Event()

    def serve() -> None:
        while not stopping.is_set():
            port.wait(LONG_MS)
            for message in port.receive(16):
                answer(message)

    leader = threading.Thread(target=serve, daemon=True)
    leader.start()
    try:
        yield
    finally:
        stopping.set()
        port.wake()
        leader.join(LIMIT_S)
        assert not leader.is_alive()


def test_both_endpoints_are_told(port: Port, tmp_path: Path) -> None:
    ipc, tcp = port.endpoints
    assert ipc == f"ipc://{tmp_path}/j.sock"
    assert tcp.startswith("tcp://127.0.0.1:")
    assert not tcp.endswith(":0")


def test_an_ipc_peer_is_known_by_what_the_kernel_says_and_a_tcp_peer_is_not(port: Port, connect: Connect) -> None:
    connect().send_multipart([b"{}", b"image"])
    (message,) = received(port, 1)
    assert message.credentials == (os.getuid(), os.getgid(), os.getpid())
    connect(endpoint=1).send_multipart([b"{}", b"image"])
    (message,) = received(port, 1)
    assert message.credentials is None
    assert [bytes(frame) for frame in message.frames] == [b"{}", b"image"]


@pytest.mark.parametrize(
    ("sent", "frames", "delimited"),
    [
        ([b"{}"], [b"{}"], False),
        ([b"{}", b"image"], [b"{}", b"image"], False),
        ([b"", b"{}", b"image"], [b"{}", b"image"], True),
        ([b"{}", b""], [b"{}", b""], False),
        ([b"", b""], [b""], True),
        ([b""], [b""], False),
        ([b"%d" % i for i in range(20)], [b"%d" % i for i in range(20)], False),
    ],
)
def test_an_empty_first_frame_is_a_delimiter_where_more_follow(
    port: Port, connect: Connect, sent: list[bytes], frames: list[bytes], delimited: bool
) -> None:
    connect().send_multipart(sent)
    (message,) = received(port, 1)
    assert [bytes(frame) for frame in message.frames] == frames
    assert message.route.delimited is delimited


def test_req_and_dealer_each_get_their_answer_as_they_framed_their_question(port: Port, connect: Connect) -> None:
    req, dealer, careful = connect(zmq.REQ), connect(), connect()
    req.send(b"req")
    dealer.send(b"dealer")
    careful.send_multipart([b"", b"careful"])
    for message in received(port, 3):
        port.send(message.route, bytes(message.frames[0]))
    assert req.recv_multipart() == [b"req"]
    assert dealer.recv_multipart() == [b"dealer"]
    assert careful.recv_multipart() == [b"", b"careful"]


def test_two_thousand_requests_of_four_peers_are_answered_from_many_threads(port: Port, connect: Connect) -> None:
    work: queue.SimpleQueue[Message | None] = queue.SimpleQueue()

    def answer() -> None:
        while (message := work.get()) is not None:
            port.send(message.route, bytes(message.frames[0]))

    crew = [threading.Thread(target=answer, daemon=True) for _ in range(3)]
    lacking: list[int] = []

    def ask(number: int) -> None:
        peer = connect(endpoint=number % 2)
        expected = {b"%d-%d" % (number, i) for i in range(500)}
        for request in expected:
            peer.send(request)
        with contextlib.suppress(zmq.Again):
            for _ in range(500):
                expected.remove(peer.recv())
        lacking.append(len(expected))

    peers = [threading.Thread(target=ask, args=(number,), daemon=True) for number in range(4)]
    with served(port, work.put):
        for thread in [*crew, *peers]:
            thread.start()
        for thread in peers:
            thread.join(2 * LIMIT_S)
        for _ in crew:
            work.put(None)
        for thread in crew:
            thread.join(LIMIT_S)
    assert lacking == [0, 0, 0, 0]
    assert port.lost_replies == 0


def test_one_at_a_time_no_request_is_slept_over(port: Port, connect: Connect) -> None:
    # Replies leave from the asking thread while the other waits: each send may swallow the edge of the next request.
    peers = [connect(), connect()]
    with served(port, lambda message: port.send(message.route, b"pong")):
        for number in range(300):
            peer, other = peers[number % 2], peers[1 - number % 2]
            peer.send(b"ping")
            other.send(b"ping")
            assert peer.recv() == other.recv() == b"pong"


def test_messages_past_the_limit_of_a_turn_are_not_slept_over(port: Port, connect: Connect) -> None:
    peer = connect()
    for number in range(8):
        peer.send(b"%d" % number)
    found: list[Message] = []
    while len(found) < 8:
        taken = received(port, 1)  # one at a time: the descriptor's edge was there for all of them, once
        found += taken
    assert [bytes(message.frames[0]) for message in found] == [b"%d" % number for number in range(8)]


def test_a_wake_before_the_wait_ends_it(port: Port) -> None:
    port.wake()
    waiter = threading.Thread(target=port.wait, args=(LONG_MS,), daemon=True)
    waiter.start()
    waiter.join(LIMIT_S)
    assert not waiter.is_alive()
    assert port.receive(1) == []


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
    port.send(Route(b"nobody", False), b"answer")
    assert port.lost_replies == 1


LARGE = b"x" * 200_000


def slow_peer(port: Port, connect: Connect) -> tuple[zmq.Socket[bytes], Route]:
    """A peer that has asked, and that takes hardly anything until it reads."""
    peer = connect(RCVHWM=1, RCVBUF=4096)
    peer.send(b"{}")
    return peer, received(port, 1)[0].route


def test_a_slow_peer_gets_every_reply_once_it_reads(
    port: Port, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(port_module, "PATIENCE_S", LIMIT_S)
    peer, route = slow_peer(port, connect)
    with served(port, lambda message: port.send(message.route, b"pong")):
        other = connect()
        other.send(b"ping")
        assert other.recv() == b"pong"  # the leader sleeps again: nothing but the late replies can rouse it
        for number in range(100):
            port.send(route, LARGE + b"%d" % number)
        seen = {peer.recv()[len(LARGE) :] for _ in range(100)}
        assert seen == {b"%d" % number for number in range(100)}
    assert port.lost_replies == 0


def test_while_replies_wait_for_one_peer_the_others_are_answered(
    port: Port, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(port_module, "PATIENCE_S", LIMIT_S)
    _, route = slow_peer(port, connect)
    for _ in range(100):
        port.send(route, LARGE)
    with served(port, lambda message: port.send(message.route, b"pong")):
        other = connect()
        for _ in range(50):
            other.send(b"ping")
            assert other.recv() == b"pong"


def test_patience_ends_and_what_is_lost_is_counted(
    port: Port, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(port_module, "PATIENCE_S", 0.0)
    peer, route = slow_peer(port, connect)
    for _ in range(100):
        port.send(route, LARGE)
    port.wait(0)
    lost = port.lost_replies
    assert 0 < lost < 100
    for _ in range(100 - lost):
        assert peer.recv() == LARGE
    peer.setsockopt(zmq.RCVTIMEO, 0)
    with pytest.raises(zmq.Again):
        peer.recv()


def test_no_more_replies_are_kept_than_the_limit(port: Port, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port_module, "PATIENCE_S", LIMIT_S)
    monkeypatch.setattr(port_module, "MOST_DELAYED", 5)
    peer, route = slow_peer(port, connect)
    for _ in range(100):
        port.send(route, LARGE)
    lost = port.lost_replies
    assert 0 < lost < 95
    with served(port, lambda _: None):
        for _ in range(100 - lost):
            assert peer.recv() == LARGE
    assert port.lost_replies == lost


def test_a_closed_port_takes_and_sends_nothing(tmp_path: Path) -> None:
    opened = Port(None, "tcp://127.0.0.1:0", 1000)
    opened.close()
    assert opened.receive(1) == []
    opened.send(Route(b"somebody", False), b"answer")
    assert opened.lost_replies == 0
