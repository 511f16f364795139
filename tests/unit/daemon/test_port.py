"""The ROUTER socket with real peers: nothing is lost, slept over, or sent to nobody uncounted."""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import threading
from pathlib import Path

import pytest
import zmq

from jetsel.config import Server
from jetsel.daemon.access.keyring import Keyring
from jetsel.daemon.identity import Identity
from jetsel.daemon.listener import Listener
from jetsel.daemon.message import Message, Route
from jetsel.daemon.port import Port
from jetsel.daemon.zmtp.mechanism import Null
from jetsel.errors import ConfigError
from jetsel.keys import KeyFolder
from tests.system.raw import greeting, reach, ready
from tests.system.sealed import take_frame
from tests.unit.daemon.ports import LIMIT_S, TCP, Connect, received, served
from tests.waiting import until

BOTH = pytest.mark.parametrize("over", ["tcp", "keys"])


def test_both_endpoints_are_told(port: Port, tmp_path: Path) -> None:
    ipc, tcp = port.endpoints
    assert ipc == f"ipc://{tmp_path}/j.sock"
    assert tcp.startswith("tcp://127.0.0.1:")
    assert not tcp.endswith(":0")


def test_an_ipc_peer_is_known_by_what_the_kernel_says_and_a_tcp_peer_is_not(port: Port, connect: Connect) -> None:
    connect().send_multipart([b"{}", b"image"])
    (message,) = received(port, 1)
    assert message.sender.credentials == (os.getuid(), os.getgid(), os.getpid())
    connect(endpoint=1).send_multipart([b"{}", b"image"])
    (message,) = received(port, 1)
    assert message.sender.credentials is None
    assert [bytes(frame) for frame in message.frames] == [b"{}", b"image"]


@pytest.mark.parametrize("has_keys", [False, True])
def test_the_kernel_finds_a_tcp_peer_whose_machine_is_gone_within_the_time_of_peers(
    tmp_path: Path, has_keys: bool
) -> None:
    keyring = None
    if has_keys:
        folder = KeyFolder(tmp_path / "keys")
        folder.make_server(None)
        keyring = Keyring(str(folder.path))
    patient = Port(None, "tcp://127.0.0.1:0", 1000, keyring, Server(peer_timeout_s=9.0))
    with served(patient, lambda _: None), reach(patient.endpoints[0]) as peer:
        peer.sendall(greeting(b"CURVE" if has_keys else b"NULL"))
        assert peer.recv(1)
        (descriptor,) = (fd for fd in descriptors() if is_connected_to(fd, peer))
        with socket.socket(fileno=os.dup(descriptor)) as accepted:
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            idle_s, pause_s, probes, unacknowledged_ms = (
                accepted.getsockopt(socket.IPPROTO_TCP, option)
                for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
            )
    assert idle_s + probes * pause_s == 9, "while nothing is sent"
    assert unacknowledged_ms == 9000, "while a reply is"
    patient.close()


def descriptors() -> list[int]:
    return [int(link.name) for link in Path("/proc/self/fd").iterdir()]


def is_connected_to(descriptor: int, peer: socket.socket) -> bool:
    """Whether it is the other end."""
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as other:
        return bool(other.getpeername() == peer.getsockname())
    return False


def test_a_peer_cannot_say_who_it_is(port: Port, tmp_path: Path) -> None:
    # ZMTP lets a peer name any property; libzmq keeps what it knows itself, and nobody sets User-Id on ipc.
    folder = KeyFolder(tmp_path / "keys")
    pair = folder.make_server(None)
    folder.allow("boss", pair.public, is_admin=True)
    listener = Listener(tmp_path / "k.sock", None)
    guarded = Port(listener, "tcp://127.0.0.1:0", 1000, Keyring(str(folder.path)))
    made_up = {"User_Id": pair.public.encode(), "Peer_Address": b"localhost:4000000000:0:1"}
    mine = Identity(f"uid {os.getuid()}", (os.getuid(), os.getgid(), os.getpid()))
    try:
        for opened, endpoint, who in ((port, 0, mine), (guarded, 0, mine), (port, 1, Identity("loopback"))):
            messages: list[Message] = []
            with served(opened, messages.append), reach(opened.endpoints[endpoint]) as peer:
                peer.sendall(greeting())
                assert peer.recv(64, socket.MSG_WAITALL)
                peer.sendall(ready(**made_up))
                assert peer.recv(1)
                peer.sendall(b"\x00\x02{}")
                until(lambda: messages)  # noqa: B023
            assert messages[0].sender == who
    finally:
        guarded.close()
        listener.close()


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


@BOTH
def test_req_and_dealer_each_get_their_answer_as_they_framed_their_question(port: Port, connect: Connect) -> None:
    req, dealer, careful = (connect(kind, TCP) for kind in (zmq.REQ, zmq.DEALER, zmq.DEALER))
    req.send(b"req")
    dealer.send(b"dealer")
    careful.send_multipart([b"", b"careful"])
    for message in received(port, 3):
        port.send(message.route, bytes(message.frames[0]))
    assert req.recv_multipart() == [b"req"]
    assert dealer.recv_multipart() == [b"dealer"]
    assert careful.recv_multipart() == [b"", b"careful"]


@BOTH
def test_two_thousand_requests_of_four_peers_are_answered_from_many_threads(port: Port, connect: Connect) -> None:
    work: queue.SimpleQueue[Message | None] = queue.SimpleQueue()

    def answer() -> None:
        while (message := work.get()) is not None:
            port.send(message.route, bytes(message.frames[0]))
            port.wake()  # what the sending may have hidden is for the thread at the socket

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


@BOTH
def test_one_at_a_time_no_request_is_slept_over(port: Port, connect: Connect) -> None:
    peers = [connect(endpoint=TCP), connect()]
    with served(port, lambda message: port.send(message.route, b"pong")):
        for number in range(300):
            peer, other = peers[number % 2], peers[1 - number % 2]
            peer.send(b"ping")
            other.send(b"ping")
            assert peer.recv() == other.recv() == b"pong"


@BOTH
def test_messages_past_the_limit_of_a_turn_are_not_slept_over(port: Port, connect: Connect) -> None:
    peer = connect(endpoint=TCP)
    for number in range(8):
        peer.send(b"%d" % number)
    found: list[Message] = []
    while len(found) < 8:
        taken = received(port, 1)  # one at a time: the descriptor's edge was there for all of them, once
        found += taken
    assert [bytes(message.frames[0]) for message in found] == [b"%d" % number for number in range(8)]


@pytest.mark.parametrize("is_open", [False, True])
def test_who_hangs_up_behind_its_request_leaves_its_place(port: Port, is_open: bool) -> None:
    messages: list[Message] = []
    before = len(descriptors())
    with served(port, messages.append):
        for count in range(1, 101):
            with reach(port.endpoints[0]) as peer:
                peer.sendall(greeting() + ready())
                if is_open:
                    assert peer.recv(len(Null.greeting), socket.MSG_WAITALL)
                    assert take_frame(peer)
                peer.sendall(b"\x00\x02{}")
            until(lambda: len(descriptors()) == before)
            if is_open:  # who is greeted is heard to its end
                until(lambda: len(messages) == count)  # noqa: B023


def test_a_wake_before_the_wait_ends_it(port: Port) -> None:
    port.wake()
    waiter = threading.Thread(target=port.waiter(), daemon=True)
    waiter.start()
    waiter.join(LIMIT_S)
    assert not waiter.is_alive()
    assert port.receive(1) == []


def test_each_wake_rouses_one_of_several_sleepers(port: Port) -> None:
    roused = threading.Semaphore(0)
    sleeps = [port.waiter() for _ in range(3)]

    def sleep(number: int) -> None:
        sleeps[number]()
        roused.release()

    sleepers = [threading.Thread(target=sleep, args=(number,), daemon=True) for number in range(3)]
    for thread in sleepers:
        thread.start()
    for _ in sleepers:
        port.wake()
        assert roused.acquire(timeout=LIMIT_S)
    for thread in sleepers:
        thread.join(LIMIT_S)
        assert not thread.is_alive()


def test_what_a_turn_leaves_rouses_a_sleeper_once(port: Port, connect: Connect) -> None:
    peer = connect()
    for number in range(20):
        peer.send(b"%d" % number)
    first = received(port, 1)
    found = first
    while len(found) < 15:  # each leaves something, and nobody sleeps
        found += port.receive(1)
    sleeper = threading.Thread(target=port.waiter(), daemon=True)
    sleeper.start()
    sleeper.join(LIMIT_S)
    assert not sleeper.is_alive()
    assert len(port.receive(64)) == 20 - len(found)
    assert port.receive(1) == []
    other = threading.Thread(target=port.waiter(), daemon=True)
    other.start()
    other.join(0.2)
    assert other.is_alive(), "it was told once"
    port.wake()
    other.join(LIMIT_S)


def test_a_tcp_port_that_is_taken_is_refused_with_an_example(port: Port) -> None:
    with pytest.raises(
        ConfigError, match=r"^server\.tcp: cannot listen at tcp://127\.0\.0\.1:\d+: Address already in use; example"
    ):
        Port(None, port.endpoints[1], 1000)


def test_an_address_that_there_is_not_is_refused_in_words() -> None:
    with pytest.raises(ConfigError, match=r"cannot listen at tcp://127\.300\.1\.1:5799: [A-Z][a-z]+ .*; example"):
        Port(None, "tcp://127.300.1.1:5799", 1000)


def test_a_closed_port_takes_and_sends_nothing(tmp_path: Path) -> None:
    opened = Port(None, "tcp://127.0.0.1:0", 1000)
    opened.close()
    assert opened.receive(1) == []
    opened.send(Route(12, False), b"answer")
    assert opened.lost_replies == 1
