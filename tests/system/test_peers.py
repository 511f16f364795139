"""Peers that stall, flood or break the protocol: none ends the daemon, or takes what others need."""

from __future__ import annotations

import contextlib
import socket
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


def test_300_half_open_connections_stop_nobody_and_leave_nothing(daemon: Daemon) -> None:
    before = held(daemon.process.pid).descriptors
    with contextlib.ExitStack() as stack:
        for number in range(300):
            stack.enter_context(reach(daemon.endpoint)).sendall(HALVES[number % len(HALVES)])
        with jetsel.Client(daemon.endpoint) as client:
            for seed in range(20):
                assert client.classify(drawn(seed)).label
    until(lambda: held(daemon.process.pid).descriptors <= before)
