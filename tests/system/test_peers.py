"""Peers that stall, flood or break the protocol: none ends the daemon, or takes what others need."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator

import pytest

import jetsel
from tests.faults.watch import held
from tests.system.daemons import Daemon, Start, drawn
from tests.system.raw import LIMIT_S, frame, greeting, hung_up, message, reach, ready
from tests.waiting import until

STATUS = b'{"v":1,"type":"status","id":"x"}'
PING = b"\x04\x09\x04PING\0\0ab"
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


def test_a_ping_behind_what_is_not_taken_yet_and_a_hangup_do_no_harm(daemon: Daemon) -> None:
    for count in (1, 9, 40, 120) * 50:  # libzmq 4.3.5 ends its process where a ROUTER of its own is asked so
        with greeted(daemon) as peer:
            peer.sendall(message(STATUS) * count + PING * 5 + message(STATUS) * 3 + PING)


def test_a_ping_is_answered_with_what_it_asks_to_hear(daemon: Daemon) -> None:
    with greeted(daemon) as peer:
        peer.sendall(PING)
        assert said(peer, b"\x04\x07\x04PONGab")


def test_a_message_of_a_million_frames_stops_nobody(daemon: Daemon) -> None:
    with greeted(daemon) as peer, jetsel.Client(daemon.endpoint) as client:
        with contextlib.suppress(ConnectionError):
            peer.sendall(b"\x01\x02{}" + b"\x01\x00" * 1_000_000 + b"\x00\x00")
        assert client.status().state == "ready"
        assert hung_up(peer)


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


def test_unfinished_messages_are_bounded_together_and_whoever_holds_most_goes(daemon: Daemon) -> None:
    before_mb = held(daemon.process.pid).resident_mb
    with contextlib.ExitStack() as stack:
        modest = stack.enter_context(greeted(daemon))
        asked = message(STATUS, bytes(5 * MEGABYTE))
        modest.sendall(asked[:MEGABYTE])
        for _ in range(12):
            peer = stack.enter_context(greeted(daemon))
            with contextlib.suppress(ConnectionError):
                peer.sendall(frame(bytes(15 * MEGABYTE), announced=16 * MEGABYTE))
        until(lambda: "is hung up on" in daemon.log.read_text())
        until(lambda: held(daemon.process.pid).resident_mb < before_mb + PEERS_MB + 50)
        modest.sendall(asked[MEGABYTE:])
        assert b'"id":"x"' in said(modest, b'"type"'), "who holds less goes on"
    until(lambda: held(daemon.process.pid).resident_mb < before_mb + 50)


def test_300_half_open_connections_stop_nobody_and_leave_nothing(daemon: Daemon) -> None:
    before = held(daemon.process.pid).descriptors
    with contextlib.ExitStack() as stack:
        for number in range(300):
            stack.enter_context(reach(daemon.endpoint)).sendall(HALVES[number % len(HALVES)])
        with jetsel.Client(daemon.endpoint) as client:
            for seed in range(20):
                assert client.classify(drawn(seed)).label
    until(lambda: held(daemon.process.pid).descriptors <= before)


def test_a_client_that_pauses_while_500_replies_of_20_kb_are_due_gets_all_of_them(daemon: Daemon) -> None:
    with greeted(daemon) as peer, jetsel.Client(daemon.endpoint) as client:
        peer.sendall(message(STATUS))
        size = len(said(peer, b'"lost_replies"'))
        count = 500 * 20_000 // size
        for number in range(count):  # so that each is known by its id
            peer.sendall(message(STATUS.replace(b'"x"', b'"n%d"' % number)))
        found = said(peer, b'"type":"status"', count)
        ids = [json.loads(b'"' + each.split(b'"')[0] + b'"') for each in found.split(b'"id":"')[1:]]
        assert sorted(ids) == sorted(f"n{number}" for number in range(count))
        assert client.status().lost_replies == 0


def test_a_client_that_reads_nothing_for_ever_is_hung_up_on(daemon: Daemon) -> None:
    with greeted(daemon) as deaf, jetsel.Client(daemon.endpoint) as client:
        with contextlib.suppress(ConnectionError):
            while True:
                deaf.sendall(message(STATUS) * 100)
        assert client.status().lost_replies > 0
    assert "does not read" in daemon.log.read_text()
