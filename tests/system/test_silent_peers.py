"""Peers that stall: before the greeting, within it, within a frame, or for good: they are cut off, nobody notices."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator

import pytest

import jetsel
from tests.faults.watch import held
from tests.system.daemons import Daemon, Start, drawn, free_port
from tests.system.raw import LIMIT_S, frame, greeting, hung_up, reach, ready
from tests.waiting import until

PEER_TIMEOUT_S = 1.0
MEGABYTE = 1_000_000

HALVES = {
    "silence": b"",
    "one byte": b"\xff",
    "half a greeting": greeting()[:30],
    "a greeting and no more": greeting(),
    "half a READY": greeting() + ready()[:10],
    "READY and silence": greeting() + ready(),
    "the head of a frame": greeting() + ready() + frame(b"", announced=12 * MEGABYTE),
    "half a frame": greeting() + ready() + frame(bytes(MEGABYTE), announced=12 * MEGABYTE),
}


PATIENT = "READY and silence"  # it owes nothing then, and may take its time


@pytest.fixture
def daemon(start: Start) -> Daemon:
    tcp = f"tcp://127.0.0.1:{free_port()}"
    return start(f'[server]\npeer_timeout_s = {PEER_TIMEOUT_S}\ntcp = "{tcp}"\n')


def tcp_of(daemon: Daemon) -> str:
    with jetsel.Client(daemon.endpoint) as client:
        return client.status().endpoints[1]


def say(peer: socket.socket, words: bytes) -> None:
    """Send as far as the other side has patience; what follows READY only once it has read that."""
    with contextlib.suppress(OSError):
        first = min(len(words), len(greeting() + ready()))
        peer.sendall(words[:first])
        time.sleep(0.1)
        peer.sendall(words[first:])


@pytest.mark.parametrize("words", [words for words in HALVES if words != PATIENT])
@pytest.mark.parametrize("over", ["ipc", "tcp"])
def test_a_peer_that_stalls_is_cut_off(daemon: Daemon, over: str, words: str) -> None:
    with reach(daemon.endpoint if over == "ipc" else tcp_of(daemon)) as peer:
        say(peer, HALVES[words])
        assert hung_up(peer)
    with jetsel.Client(daemon.endpoint) as client:
        assert client.classify(drawn()).label


@pytest.mark.parametrize("over", ["ipc", "tcp"])
def test_a_peer_that_stalls_in_its_second_message_is_cut_off(daemon: Daemon, over: str) -> None:
    status = b'{"v":1,"type":"status","id":"x"}'
    with reach(daemon.endpoint if over == "ipc" else tcp_of(daemon)) as peer:
        say(peer, greeting() + ready() + frame(status))
        said = b""
        while b'"status"' not in said:
            said += peer.recv(65536) or pytest.fail("it was hung up on")
        time.sleep(PEER_TIMEOUT_S)  # it may rest
        peer.sendall(frame(bytes(MEGABYTE), announced=12 * MEGABYTE))
        assert hung_up(peer)
    with jetsel.Client(daemon.endpoint) as client:
        assert client.classify(drawn()).label


def test_what_a_stalled_peer_had_sent_is_given_back(start: Start) -> None:
    daemon = start("[server]\npeer_timeout_s = 6\n")
    with jetsel.Client(daemon.endpoint) as client:
        client.status()
        before = held(daemon.process.pid)
        peers = [reach(daemon.endpoint) for _ in range(10)]
        for peer in peers:
            say(peer, greeting() + ready() + frame(b"\1" * 14 * MEGABYTE, announced=15 * MEGABYTE))
        assert held(daemon.process.pid).resident_mb > before.resident_mb + 100, "else the test shows nothing"
        for peer in peers:
            assert hung_up(peer)
            peer.close()
        until(lambda: held(daemon.process.pid).resident_mb <= before.resident_mb + 20)
        until(lambda: held(daemon.process.pid).descriptors <= before.descriptors)
        assert client.status().state == "ready"


@contextlib.contextmanager
def half_open(endpoint: str, count: int) -> Iterator[list[socket.socket]]:
    peers = [reach(endpoint) for _ in range(count)]
    try:
        yield peers
    finally:
        for peer in peers:
            peer.close()


@pytest.mark.parametrize("over", ["ipc", "tcp"])
def test_300_half_open_connections_stop_nobody(start: Start, over: str) -> None:
    daemon = start(f'[server]\npeer_timeout_s = 5\ntcp = "tcp://127.0.0.1:{free_port()}"\n')
    endpoint = daemon.endpoint if over == "ipc" else tcp_of(daemon)
    before = held(daemon.process.pid).descriptors
    with half_open(endpoint, 300) as peers:
        for number, peer in enumerate(peers):
            with contextlib.suppress(OSError):
                peer.sendall(greeting()[: number % 64])
        with jetsel.Client(daemon.endpoint) as client, jetsel.Client(tcp_of(daemon)) as over_tcp:
            for seed in range(20):
                assert client.classify(drawn(seed)).label
                assert over_tcp.classify(drawn(seed)).label
        assert all(hung_up(peer) for peer in peers)
    give_up = time.monotonic() + LIMIT_S
    while held(daemon.process.pid).descriptors > before:
        assert time.monotonic() < give_up, (before, held(daemon.process.pid).descriptors)
        time.sleep(0.1)


def test_an_idle_client_is_not_cut_off(daemon: Daemon) -> None:
    with jetsel.Client(daemon.endpoint) as client, jetsel.Client(tcp_of(daemon)) as over_tcp:
        links = []
        for one in (client, over_tcp):
            one.status()
            links.append(one._link)
        time.sleep(3 * PEER_TIMEOUT_S)
        for one, link in zip((client, over_tcp), links, strict=True):
            assert link is not None
            assert link.end is None
            one.status()
            assert one._link is link
