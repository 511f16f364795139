"""Peers that stall: before the greeting, within it, within a frame, or for good: they are cut off, nobody notices."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import jetsel
from tests.system.curve import Keys
from tests.system.daemons import Daemon, Start, drawn, free_port
from tests.system.raw import LIMIT_S, frame, greeting, hung_up, reach, ready

PEER_TIMEOUT_S = 1.0
MEGABYTE = 1_000_000

HALVES = {
    "silence": b"",
    "one byte": b"\xff",
    "half a greeting": greeting()[:30],
    "a greeting and no more": greeting(),
    "half a READY": greeting() + ready()[:10],
    "READY and silence": greeting() + ready(),
    "the head of a frame": greeting() + ready() + frame(b"", announced=20 * MEGABYTE),
    "half a frame": greeting() + ready() + frame(bytes(MEGABYTE), announced=20 * MEGABYTE),
}


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


@pytest.mark.parametrize("words", HALVES)
@pytest.mark.parametrize("over", ["ipc", "tcp"])
def test_a_peer_that_stalls_is_cut_off(daemon: Daemon, over: str, words: str) -> None:
    with reach(daemon.endpoint if over == "ipc" else tcp_of(daemon)) as peer:
        say(peer, HALVES[words])
        assert hung_up(peer)
    with jetsel.Client(daemon.endpoint) as client:
        assert client.classify(drawn()).label


def resident_mb(daemon: Daemon) -> float:
    lines = Path(f"/proc/{daemon.process.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


def descriptors(daemon: Daemon) -> int:
    return len(list(Path(f"/proc/{daemon.process.pid}/fd").iterdir()))


def test_what_a_stalled_peer_had_sent_is_given_back(start: Start) -> None:
    daemon = start("[server]\npeer_timeout_s = 6\n")
    with jetsel.Client(daemon.endpoint) as client:
        client.status()
        before_mb, before = resident_mb(daemon), descriptors(daemon)
        peers = [reach(daemon.endpoint) for _ in range(10)]
        for peer in peers:
            say(peer, greeting() + ready() + frame(b"\1" * 20 * MEGABYTE, announced=30 * MEGABYTE))
        assert resident_mb(daemon) > before_mb + 100, "nothing was held: the test shows nothing"
        for peer in peers:
            assert hung_up(peer)
            peer.close()
        give_up = time.monotonic() + LIMIT_S
        while resident_mb(daemon) > before_mb + 20 or descriptors(daemon) > before:
            assert time.monotonic() < give_up, (before_mb, resident_mb(daemon), before, descriptors(daemon))
            time.sleep(0.1)
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
    before = descriptors(daemon)
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
    while descriptors(daemon) > before:
        assert time.monotonic() < give_up, (before, descriptors(daemon))
        time.sleep(0.1)


ASKER = """
import sys, jetsel
from jetsel.errors import JetselError
settings = dict(zip(("key", "server_key"), sys.argv[2:]))
with jetsel.Client(sys.argv[1], **settings) as client:
    print(client.status().state, flush=True)
    for line in sys.stdin:
        try:
            print(client.status().state, flush=True)
        except JetselError as error:
            print(error.code, flush=True)
"""


def test_a_client_that_was_stopped_is_cut_off_and_goes_on_where_it_was(start: Start, tmp_path: Path) -> None:
    keys = Keys.new(tmp_path)
    keys.allow("camera")
    tcp = f"tcp://127.0.0.1:{free_port()}"
    daemon = start(keys.config(tcp, f"peer_timeout_s = {PEER_TIMEOUT_S}\n"))
    settings = [str(keys.secret("camera")), str(keys.folder.server_public)]
    for where in ([daemon.endpoint], [tcp, *settings]):
        before = descriptors(daemon)
        command = [sys.executable, "-c", ASKER, *where]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as asker:
            assert asker.stdin is not None
            assert asker.stdout is not None
            assert asker.stdout.readline() == "ready\n"
            os.kill(asker.pid, signal.SIGSTOP)
            give_up = time.monotonic() + LIMIT_S
            while descriptors(daemon) > before:
                assert time.monotonic() < give_up, "the stopped client was not cut off"
                time.sleep(0.05)
            os.kill(asker.pid, signal.SIGCONT)
            asker.stdin.write("again\n")
            assert asker.stdout.readline() == "ready\n"
            asker.stdin.close()


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
