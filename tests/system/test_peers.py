"""Peers that stall, flood or break the protocol: none ends the daemon, or takes what others need."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

import jetsel
from tests.faults.watch import held
from tests.system.daemons import Daemon, Start, drawn
from tests.system.raw import LIMIT_S, greeting, message, reach, ready
from tests.waiting import until

STATUS = b'{"v":1,"type":"status","id":"x"}'
HELLO = greeting() + ready()
MEGABYTE = 1_000_000
PEERS_MB = 100
HALVES = (b"", b"\xff", greeting()[:30], greeting(), greeting() + ready()[:10], HELLO, HELLO + message(STATUS)[:3])


@pytest.fixture
def daemon(start: Start) -> Iterator[Daemon]:
    """One that is sound afterwards, too."""
    started = start(f"[server]\npeers_mb = {PEERS_MB}\n")
    yield started
    assert started.process.poll() is None, started.log.read_text()
    with jetsel.Client(started.endpoint) as client:
        assert client.classify(drawn()).label


@contextlib.contextmanager
def greeted(daemon: Daemon) -> Iterator[socket.socket]:
    """A connection that may ask."""
    with reach(daemon.endpoint) as peer:
        peer.settimeout(LIMIT_S)
        peer.sendall(HELLO)
        assert peer.recv(64, socket.MSG_WAITALL)
        yield peer


def said(peer: socket.socket, word: bytes, count: int = 1) -> bytes:
    """Read on until the daemon has said this so often, and return all that it said."""
    found = b""
    while found.count(word) < count:
        more = peer.recv(1_000_000)
        assert more, "it was hung up on"
        found += more
    return found


@pytest.mark.slow
def test_peers_that_send_fast_never_read_and_hang_up_do_no_harm(daemon: Daemon) -> None:
    before_mb = held(daemon.process.pid).resident_mb
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(greeted(daemon)) for _ in range(6)]
        for peer in peers:
            peer.settimeout(0.02)
        for _ in range(40):
            for peer in peers:
                with contextlib.suppress(OSError):
                    peer.send(message(STATUS) * 500)
        with jetsel.Client(daemon.endpoint) as client:
            assert client.classify(drawn()).label
    until(lambda: held(daemon.process.pid).resident_mb < before_mb + PEERS_MB + 50)


@pytest.mark.slow
def test_peers_that_write_commands_without_end_stop_nobody(daemon: Daemon) -> None:
    is_over = threading.Event()
    written = []

    def flood() -> None:
        with greeted(daemon) as peer:
            while not is_over.is_set():
                written.append(peer.send(b"\x04\x00" * 30_000))

    floods = [threading.Thread(target=flood, daemon=True) for _ in range(3)]
    for each in floods:
        each.start()
    with jetsel.Client(daemon.endpoint, timeout_ms=1e3 * LIMIT_S) as client:
        for _ in range(100):
            assert client.status().state == "ready"
        assert client.classify(drawn()).label
    is_over.set()
    for each in floods:
        each.join(LIMIT_S)
    assert sum(written) > MEGABYTE, "as long as they were answered"


def test_300_half_open_connections_stop_nobody_and_leave_nothing(daemon: Daemon) -> None:
    before = held(daemon.process.pid).descriptors
    with contextlib.ExitStack() as stack:
        for number in range(300):
            stack.enter_context(reach(daemon.endpoint)).sendall(HALVES[number % len(HALVES)])
        with jetsel.Client(daemon.endpoint) as client:
            for seed in range(20):
                assert client.classify(drawn(seed)).label
    until(lambda: held(daemon.process.pid).descriptors <= before)
