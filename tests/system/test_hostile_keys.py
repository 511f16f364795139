"""Peers over tcp that mean harm, with an allowed key or with none: none ends the daemon or takes what others need."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import jetsel
from jetsel.keys import Certificate, generate
from tests.system.curve import Guarded, Keys, guarded
from tests.system.daemons import Start, drawn
from tests.system.raw import LIMIT_S, greeting, hung_up, reach
from tests.system.sealed import Sealer, shake

STATUS = b'{"v":1,"type":"status","id":"x"}'
PING = b"\x04PING\0\0"
COMMAND = 2  # a flag within a sealed frame
FLOOD_S = 1.0


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys.new(tmp_path)


@pytest.fixture
def camera(keys: Keys) -> Certificate:
    return keys.allow("camera")


@pytest.fixture
def served(start: Start, keys: Keys, camera: Certificate) -> Iterator[Guarded]:
    """A daemon that is sound afterwards, too."""
    found = guarded(start, keys, "peer_timeout_s = 1\n")
    yield found
    assert found.daemon.process.poll() is None, found.daemon.log.read_text()
    with keys.client(found.tcp, "camera") as client:
        assert client.classify(drawn()).label


@pytest.mark.parametrize("count", [1, 9, 40, 120])
def test_a_ping_behind_what_is_not_taken_yet_and_a_hangup_do_no_harm(
    served: Guarded, camera: Certificate, count: int
) -> None:
    give_up = time.monotonic() + FLOOD_S
    while time.monotonic() < give_up:
        sealer = Sealer(camera, served.keys.folder.server().public)
        with reach(served.tcp) as peer:
            shake(peer, sealer)
            behind = [sealer.frame(STATUS) for _ in range(count)]
            behind += [sealer.frame(PING, COMMAND) for _ in range(5)]
            behind += [sealer.frame(STATUS) for _ in range(3)] + [sealer.frame(PING, COMMAND)]
            peer.sendall(b"".join(behind))


def test_a_key_that_is_allowed_does_not_open_what_was_recorded(served: Guarded, camera: Certificate) -> None:
    sealer = Sealer(camera, served.keys.folder.server().public)
    hello = sealer.hello()
    with reach(served.tcp) as peer:
        sealer.nonce = 1
        shake(peer, sealer)
        recorded = sealer.message(STATUS)
        peer.sendall(recorded)
        assert peer.recv(1)
        peer.sendall(recorded)
        assert hung_up(peer)
    with reach(served.tcp) as peer:
        peer.sendall(greeting(b"CURVE") + hello + recorded)
        assert hung_up(peer)


@pytest.mark.parametrize("kind", ["says nothing", "knows no key", "begins and goes"])
def test_strangers_without_end_keep_nobody_from_anything(served: Guarded, kind: str) -> None:
    stranger, server = generate(), served.keys.folder.server().public

    def come() -> None:
        with contextlib.suppress(OSError, AssertionError), reach(served.tcp) as peer:
            peer.settimeout(LIMIT_S)
            if kind == "says nothing":
                hung_up(peer)
            elif kind == "knows no key":
                shake(peer, Sealer(stranger, server))
            else:
                peer.sendall(greeting(b"CURVE") + Sealer(stranger, server).hello())

    came, stop = crowd(come)
    try:
        began = time.monotonic()
        with jetsel.Client(served.daemon.endpoint, timeout_ms=1e3 * LIMIT_S) as near:
            while time.monotonic() < began + FLOOD_S:
                assert near.status().state == "ready"
            assert near.classify(drawn()).label
        with served.keys.client(served.tcp, "camera", timeout_ms=1e3 * LIMIT_S) as far:
            assert far.classify(drawn()).label
    finally:
        stop()
    assert sum(came) > 0


def crowd(come: Callable[[], None]) -> tuple[list[int], Callable[[], None]]:
    """Have some come again and again; return how often each has, and what ends that."""
    is_over = threading.Event()
    came = [0] * 4

    def again(number: int) -> None:
        while not is_over.is_set():
            come()
            came[number] += 1

    threads = [threading.Thread(target=again, args=(number,), daemon=True) for number in range(len(came))]
    for each in threads:
        each.start()

    def stop() -> None:
        is_over.set()
        for each in threads:
            each.join(LIMIT_S)

    return came, stop
