"""Peers over tcp that are to show a key: how long and how many they may be, and what the log is told of the refused."""

from __future__ import annotations

import functools
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from jetsel.config import Server as Limits
from jetsel.daemon import tcp
from jetsel.daemon.access.keyring import Keyring
from jetsel.daemon.zmtp.curve import Curve
from jetsel.daemon.zmtp.places import STRANGERS
from jetsel.daemon.zmtp.server import CROWDED_S, HANDSHAKE_S
from jetsel.daemon.zmtp.wire import GREETING_BYTES
from jetsel.keys import Certificate, KeyFolder, generate
from tests.system.raw import greeting, hung_up
from tests.system.sealed import Sealer, take_frame
from tests.unit.daemon.zmtp.rig import Rig
from tests.waiting import until

CAMERA, PHONE = generate(), generate()
SHARE = 2


@pytest.fixture
def keyring(tmp_path: Path) -> Keyring:
    folder = KeyFolder(tmp_path / "keys")
    folder.make_server(None)
    folder.allow("camera", CAMERA.public, is_admin=False)
    folder.allow("phone", PHONE.public, is_admin=False)
    return Keyring(str(folder.path))


def opened(stack: ExitStack, keyring: Keyring) -> Rig:
    limits = Limits(client_connections=SHARE, peer_timeout_s=100.0)
    return Rig(stack, tcp.listen("tcp://127.0.0.1:0"), limits, functools.partial(Curve, keyring))


@pytest.fixture
def rig(keyring: Keyring) -> Iterator[Rig]:
    with ExitStack() as stack:
        yield opened(stack, keyring)


def begin(rig: Rig, keyring: Keyring, pair: Certificate = CAMERA) -> tuple[socket.socket, Sealer]:
    """A peer that has shown its key, and has not been answered."""
    sealer = Sealer(pair, keyring.server.public)
    peer = rig.connect(greeting(b"CURVE") + sealer.hello())
    until(lambda: rig.receive_all() == 0 and readable(peer))
    assert peer.recv(GREETING_BYTES, socket.MSG_WAITALL)
    sealer.welcomed(take_frame(peer))
    peer.sendall(sealer.initiate())
    return peer, sealer


def readable(peer: socket.socket) -> bool:
    """Whether its greeting, and a word beside it, are there."""
    return len(peer.recv(GREETING_BYTES + 1, socket.MSG_PEEK)) > GREETING_BYTES


def let_in(rig: Rig, keyring: Keyring, pair: Certificate = CAMERA) -> tuple[socket.socket, Sealer]:
    peer, sealer = begin(rig, keyring, pair)
    rig.receive_all()
    assert take_frame(peer)[:6] == b"\x05READY"
    return peer, sealer


def refusals(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "jetsel.access"]


def test_a_request_and_its_answer_are_sealed(rig: Rig, keyring: Keyring) -> None:
    peer, sealer = let_in(rig, keyring)
    peer.sendall(sealer.message(b"{}", b"image"))
    ((token, identity, frames),) = rig.receive()
    assert identity.name == "key camera"
    assert [bytes(frame) for frame in frames] == [b"{}", b"image"]
    for answer in (b"first", b"x" * 5000):
        rig.server.send(token, (b"", answer))
        assert sealer.opened(take_frame(peer)) == (1, b"")
        assert sealer.opened(take_frame(peer)) == (0, answer)


def test_what_is_sent_behind_the_handshake_at_once_is_heard(rig: Rig, keyring: Keyring) -> None:
    peer, sealer = begin(rig, keyring)
    peer.sendall(sealer.message(b"{}"))
    until(lambda: rig.receive_all() == 1)


def test_answers_that_wait_for_their_reader_are_in_order(rig: Rig, keyring: Keyring) -> None:
    peer, sealer = let_in(rig, keyring)
    peer.sendall(sealer.message(b"{}"))
    ((token, _, _),) = rig.receive()
    for number in range(200):
        rig.server.send(token, (bytes([number]) * 50_000,))
    assert rig.server.has_late
    for number in range(200):
        rig.clock.now_s += 0.005
        rig.receive()
        assert sealer.opened(take_frame(peer)) == (0, bytes([number]) * 50_000)
    assert not rig.server.lost_replies


def test_one_that_says_nothing_has_its_time_and_the_log_is_told(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    peer = rig.connect()
    rig.receive_all()
    rig.clock.now_s += HANDSHAKE_S
    rig.receive_all()
    assert rig.server.clients == 1
    rig.clock.now_s += 1.0
    rig.receive_all()
    assert rig.server.clients == 0
    assert hung_up(peer)
    assert refusals(caplog) == ["127.0.0.1 was refused: it did not greet within 5 s"]


def test_where_many_say_nothing_the_next_wait_a_second(rig: Rig, keyring: Keyring) -> None:
    silent = [rig.connect() for _ in range(STRANGERS)]
    rig.receive_all()
    late = rig.connect()
    rig.receive_all()
    assert rig.server.clients == STRANGERS
    rig.clock.now_s += CROWDED_S + 0.01
    rig.receive_all()
    assert all(hung_up(each) for each in silent)
    rig.receive_all()
    assert rig.server.clients == 1
    late.close()
    let_in(rig, keyring)


def test_who_was_let_in_is_none_of_those(rig: Rig, keyring: Keyring) -> None:
    peer, sealer = let_in(rig, keyring)
    for _ in range(STRANGERS):
        rig.connect()
    rig.receive_all()
    assert rig.server.clients == STRANGERS + 1
    rig.clock.now_s += 50.0
    rig.receive_all()
    assert rig.server.clients == 1
    peer.sendall(sealer.message(b"{}"))
    assert rig.receive_all() == 1


def test_a_key_has_its_share_of_connections_and_another_s_is_left_alone(
    rig: Rig, keyring: Keyring, caplog: pytest.LogCaptureFixture
) -> None:
    standing = [let_in(rig, keyring) for _ in range(SHARE)]
    surplus, _ = begin(rig, keyring)
    rig.receive_all()
    assert hung_up(surplus)
    let_in(rig, keyring, PHONE)
    standing[0][0].close()
    rig.receive_all()
    let_in(rig, keyring)
    assert not refusals(caplog), "it may ask, and is told so elsewhere"
    assert [m for m in caplog.messages if m.startswith("key camera has all the connections")]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "no greeting of ZMTP 3"),
        (greeting(b"NULL"), "it has no key where one is needed"),
        (b"", "it hung up before it showed a key"),
        (greeting(b"CURVE"), "it hung up before it showed a key"),
    ],
)
def test_each_that_is_refused_is_logged_with_its_address(
    rig: Rig, caplog: pytest.LogCaptureFixture, said: bytes, reason: str
) -> None:
    peer = rig.connect(said)
    rig.receive_all()
    peer.shutdown(socket.SHUT_WR)
    rig.receive_all()
    assert hung_up(peer)
    assert refusals(caplog) == [f"127.0.0.1 was refused: {reason}"]


def test_a_key_that_nobody_knows_is_told_so_and_logged(
    rig: Rig, keyring: Keyring, caplog: pytest.LogCaptureFixture
) -> None:
    stranger = generate()
    peer, _ = begin(rig, keyring, stranger)
    rig.receive_all()
    assert take_frame(peer) == b"\x05ERROR\x03400"
    assert hung_up(peer)
    assert refusals(caplog) == [f"127.0.0.1 was refused: its key {stranger.public} is not allowed: jetsel keys allow"]
    assert rig.server.clients == 0


def test_when_the_daemon_ends_nobody_is_called_refused(keyring: Keyring, caplog: pytest.LogCaptureFixture) -> None:
    with ExitStack() as stack:
        rig = opened(stack, keyring)
        rig.connect()
        rig.receive_all()
        assert rig.server.clients == 1
    assert not refusals(caplog)
