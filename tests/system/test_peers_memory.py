"""Peers that send without end: what is held for them stays bounded, and honest clients go on."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import jetsel
from tests.system.curve import Keys
from tests.system.daemons import Daemon, Start, drawn, free_port
from tests.system.raw import LIMIT_S, frame, greeting, hung_up, message, reach, ready
from tests.waiting import until

MEGABYTE = 1_000_000
PEERS_MB = 100
SENT_MB = 2000  # what a peer would send if nobody hung up on it
SLACK_MB = 300  # what a fast one gets in between two looks on a busy machine
MORE, LONG, COMMAND = 1, 2, 4  # ZeroMQ RFC 23, Framing


@pytest.fixture
def daemon(start: Start) -> Daemon:
    return start(f'[server]\npeers_mb = {PEERS_MB}\ntcp = "tcp://127.0.0.1:{free_port()}"\n')


def resident_mb(daemon: Daemon, field: str = "VmRSS") -> float:
    """What it holds now, or at most ever held (VmHWM, proc(5))."""
    lines = Path(f"/proc/{daemon.process.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1]) / 1024


def endless(peer: socket.socket, between: Callable[[], None]) -> int:
    """Send a message that has no last frame; return the megabytes that went before the other side hung up."""
    peer.settimeout(LIMIT_S)
    peer.sendall(greeting() + ready())
    time.sleep(0.2)
    part = bytes([MORE | LONG]) + struct.pack(">Q", 8 * MEGABYTE) + bytes(8 * MEGABYTE)
    for sent_mb in range(0, SENT_MB, 8):
        try:
            peer.sendall(part)
        except ConnectionError:
            return sent_mb
        between()
    return SENT_MB


@pytest.mark.parametrize("over", ["ipc", "tcp"])
def test_a_message_that_never_ends_is_cut_off_and_its_memory_given_back(daemon: Daemon, over: str) -> None:
    with jetsel.Client(daemon.endpoint) as client:
        where = daemon.endpoint if over == "ipc" else client.status().endpoints[1]
        client.classify(drawn())
        before_mb, most_mb = resident_mb(daemon), 0.0

        def look() -> None:
            nonlocal most_mb
            most_mb = max(most_mb, resident_mb(daemon))

        with reach(where) as peer:
            assert endless(peer, look) < SENT_MB
        assert most_mb < before_mb + PEERS_MB + SLACK_MB
        give_up_s = time.monotonic() + LIMIT_S
        while resident_mb(daemon) > before_mb + PEERS_MB:
            assert time.monotonic() < give_up_s
            time.sleep(0.05)
        assert client.classify(drawn()).label


def test_strangers_who_send_megabytes_before_they_show_a_key_are_hung_up_on(start: Start, tmp_path: Path) -> None:
    tcp = f"tcp://127.0.0.1:{free_port()}"
    daemon = start(Keys.new(tmp_path).config(tcp, f"peers_mb = {PEERS_MB}\n"))
    with jetsel.Client(daemon.endpoint) as client, contextlib.ExitStack() as stack:
        client.classify(drawn())
        before_mb = resident_mb(daemon)
        hello = bytes([COMMAND | LONG]) + struct.pack(">Q", 15 * MEGABYTE) + bytes(14 * MEGABYTE)
        for _ in range(30):
            peer = stack.enter_context(reach(tcp))
            with contextlib.suppress(ConnectionError):
                peer.sendall(greeting(b"CURVE") + hello)
            assert hung_up(peer)
        assert resident_mb(daemon) < before_mb + 20
        assert client.classify(drawn()).label


def test_messages_that_are_not_whole_are_bounded_all_together(daemon: Daemon) -> None:
    with jetsel.Client(daemon.endpoint) as client, contextlib.ExitStack() as stack:
        client.classify(drawn())
        before_mb = resident_mb(daemon)
        for _ in range(9):  # the seventh is read once the first six have stalled for a second
            peer = stack.enter_context(reach(daemon.endpoint))
            with contextlib.suppress(ConnectionError):
                peer.sendall(greeting() + ready() + frame(bytes(15 * MEGABYTE), announced=16 * MEGABYTE))
        until(lambda: "peers-kept" in daemon.log.read_text())
        until(lambda: resident_mb(daemon) < before_mb + PEERS_MB + 20)
        assert client.classify(drawn()).label


@pytest.mark.parametrize("over", ["ipc", "tcp"])
def test_six_times_as_much_as_may_be_held_waits_and_each_is_answered(daemon: Daemon, over: str) -> None:
    peers = 40
    asked = b'{"v": 1, "type": "status", "id": "1"}'
    with jetsel.Client(daemon.endpoint) as client:
        where = daemon.endpoint if over == "ipc" else client.status().endpoints[1]
        client.classify(drawn())
        before_mb = resident_mb(daemon)

        def ask(_: int) -> bytes:
            with reach(where) as peer:
                peer.settimeout(LIMIT_S)
                peer.sendall(greeting() + ready() + message(asked, bytes(15 * MEGABYTE)))
                return until_said(peer, b'"type"')

        with ThreadPoolExecutor(peers) as pool:
            said = pool.map(ask, range(peers))
            assert client.classify(drawn()).label
            assert all(b'"id":"1"' in each for each in said), "nobody was hung up on"
        assert resident_mb(daemon, "VmHWM") < before_mb + PEERS_MB + SLACK_MB
        assert "peers-kept" not in daemon.log.read_text()


def until_said(peer: socket.socket, word: bytes) -> bytes:
    """Read on until the daemon has said this, and return all that it said."""
    said = b""
    while word not in said:
        more = peer.recv(65_536)
        assert more, "it hung up"
        said += more
    return said


def test_a_handshake_of_megabytes_is_hung_up_on(daemon: Daemon) -> None:
    command = bytes([COMMAND | LONG]) + struct.pack(">Q", 12 * MEGABYTE) + b"\x05READY" + bytes(12 * MEGABYTE)
    with reach(daemon.endpoint) as peer:
        with contextlib.suppress(ConnectionError):
            peer.sendall(greeting() + command)
        assert hung_up(peer)
