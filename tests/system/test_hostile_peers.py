"""Peers that know ZMTP and mean harm: none of them ends the daemon, stops it, or takes what others need."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

import jetsel
from tests.system.daemons import Daemon, Start, drawn, free_port
from tests.system.raw import LIMIT_S, greeting, hung_up, reach, ready

STATUS = b'{"v":1,"type":"status","id":"x"}'


def small(body: bytes, *, more: bool = False) -> bytes:
    """A frame of up to 255 bytes."""
    return bytes([int(more), len(body)]) + body


def greeted(daemon: Daemon, identity: bytes = b"", over: str = "ipc") -> socket.socket:
    """A connection that has greeted under this identity, and may be hung up on for that."""
    with jetsel.Client(daemon.endpoint) as client:
        peer = reach(client.status().endpoints[("ipc", "tcp").index(over)])
    peer.sendall(greeting())
    peer.settimeout(LIMIT_S)
    assert peer.recv(64, socket.MSG_WAITALL)
    with contextlib.suppress(ConnectionError):
        peer.sendall(ready(Identity=identity) if len(identity) < 200 else long_ready(identity))
    return peer


def let_in(daemon: Daemon, identity: bytes = b"", over: str = "ipc") -> socket.socket:
    """A connection that has greeted under this identity, and was greeted."""
    peer = greeted(daemon, identity, over)
    assert peer.recv(1)
    return peer


def long_ready(identity: bytes) -> bytes:
    """READY with an identity of any length, which takes a long frame."""
    body = b"\x05READY" + b"".join(
        bytes([len(name)]) + name + struct.pack(">I", len(value)) + value
        for name, value in ((b"Socket-Type", b"DEALER"), (b"Identity", identity))
    )
    return b"\x06" + struct.pack(">Q", len(body)) + body


@pytest.fixture
def daemon(start: Start) -> Iterator[Daemon]:
    """One that is sound afterwards, too."""
    started = start(f'[server]\npeer_timeout_s = 1\ntcp = "tcp://127.0.0.1:{free_port()}"\n')
    yield started
    assert started.process.poll() is None, started.log.read_text()
    with jetsel.Client(started.endpoint) as client:
        assert client.classify(drawn()).label


def test_peers_that_send_fast_never_read_and_hang_up_do_no_harm(daemon: Daemon) -> None:
    for _ in range(2):
        peers = [let_in(daemon) for _ in range(10)]
        give_up = time.monotonic() + 2.0
        while time.monotonic() < give_up:
            for peer in peers:
                peer.settimeout(0.02)
                with contextlib.suppress(OSError):
                    peer.send(small(STATUS) * 50)
        for peer in peers:
            peer.close()
        time.sleep(1.0)


@pytest.mark.parametrize("count", [1, 9, 40, 120])
def test_a_ping_behind_what_is_not_taken_yet_and_a_hangup_do_no_harm(daemon: Daemon, count: int) -> None:
    ping = b"\x04\x07\x04PING\0\0"  # libzmq 4.3.5 ends its process where a ROUTER of its own is asked so
    give_up = time.monotonic() + 1.0
    while time.monotonic() < give_up:
        with let_in(daemon) as peer:
            peer.sendall(small(STATUS) * count + ping * 5 + small(STATUS) * 3 + ping)


def test_a_ping_is_answered_with_what_it_asks_to_hear(daemon: Daemon) -> None:
    with let_in(daemon) as peer:
        peer.sendall(b"\x04\x09\x04PING\0\0ab")
        said = b""
        while b"\x04\x07\x04PONGab" not in said:
            said += peer.recv(65536) or pytest.fail("it was hung up on")


@pytest.mark.parametrize("identity", [b"\0\0\0\0\0", b"\0", b"\0abcdefgh", b"i" * 256, b"i" * 1_000_000])
@pytest.mark.parametrize("over", ["ipc", "tcp"])
def test_a_peer_with_an_id_that_zmtp_does_not_allow_is_hung_up_on(daemon: Daemon, identity: bytes, over: str) -> None:
    with greeted(daemon, identity, over) as peer, contextlib.suppress(ConnectionError):
        peer.sendall(small(STATUS))
        assert hung_up(peer)


def test_a_peer_may_name_itself(daemon: Daemon) -> None:
    with let_in(daemon, b"camera-1") as peer:
        peer.sendall(small(STATUS))
        said = b""
        while b'"status"' not in said:
            said += peer.recv(65536) or pytest.fail("it was hung up on")


@pytest.mark.parametrize("over", ["ipc", "tcp"])
def test_a_message_of_a_million_frames_stops_nobody(daemon: Daemon, over: str) -> None:
    with let_in(daemon, over=over) as peer, jetsel.Client(daemon.endpoint) as client:
        with contextlib.suppress(ConnectionError):
            peer.sendall(small(b"{}", more=True) + small(b"", more=True) * 1_000_000 + small(b""))
        assert client.status().state == "ready"
        assert hung_up(peer)


@pytest.mark.parametrize("over", ["ipc", "tcp"])
def test_peers_that_write_commands_without_end_stop_nobody(daemon: Daemon, over: str) -> None:
    is_over = threading.Event()
    written = []

    def flood() -> None:
        while not is_over.is_set():
            with let_in(daemon, over=over) as peer, contextlib.suppress(OSError):
                while not is_over.is_set():
                    written.append(peer.send(b"\x04\x00" * 30_000))

    floods = [threading.Thread(target=flood, daemon=True) for _ in range(3)]
    for each in floods:
        each.start()
    with jetsel.Client(daemon.endpoint, timeout_ms=1e3 * LIMIT_S) as client:
        for _ in range(200):
            assert client.status().state == "ready"
        assert client.classify(drawn()).label
    is_over.set()
    for each in floods:
        each.join(LIMIT_S)
    assert sum(written) > 1_000_000, "as long as they were answered"


def test_a_peer_that_goes_silent_after_its_first_message_stays(daemon: Daemon) -> None:
    with let_in(daemon) as peer:
        peer.sendall(small(STATUS))
        assert peer.recv(1)
        time.sleep(3.0)
        peer.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                assert peer.recv(65536), "the daemon hung up"
        peer.setblocking(True)
        peer.sendall(small(STATUS))
        peer.settimeout(LIMIT_S)
        assert peer.recv(1)
