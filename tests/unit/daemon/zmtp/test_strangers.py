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
from jetsel.daemon.zmtp.places import REVOKED_KEPT, STRANGERS
from jetsel.daemon.zmtp.server import HANDSHAKE_S, Found
from jetsel.daemon.zmtp.strangers import GRACE_S, Strangers, network_of
from jetsel.daemon.zmtp.wire import GREETING_BYTES
from jetsel.keys import Certificate, KeyFolder, generate
from tests.system.raw import greeting, hung_up
from tests.system.sealed import Sealer, take_frame
from tests.unit.daemon.clock import Clock
from tests.unit.daemon.zmtp.rig import Rig
from tests.waiting import until

CAMERA, PHONE = generate(), generate()
SHARE = 2


@pytest.fixture
def folder(tmp_path: Path) -> KeyFolder:
    found = KeyFolder(tmp_path / "keys")
    found.make_server(None)
    found.allow("camera", CAMERA.public, is_admin=False)
    found.allow("phone", PHONE.public, is_admin=False)
    return found


@pytest.fixture
def keyring(folder: KeyFolder) -> Keyring:
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
    turns(rig, peer, GREETING_BYTES + 1)
    assert peer.recv(GREETING_BYTES, socket.MSG_WAITALL)
    sealer.welcomed(take_frame(peer))
    peer.sendall(sealer.initiate())
    return peer, sealer


def turns(rig: Rig, peer: socket.socket, count: int = 1) -> None:
    """Have the server take turns until this peer has so many bytes to read, or was hung up on."""

    def has_them() -> bool:
        rig.receive_all()
        try:
            said = peer.recv(count, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        return len(said) in (0, count)

    until(has_them)


def one(rig: Rig) -> list[Found]:
    """The next message."""
    found: list[Found] = []
    until(lambda: found.extend(rig.receive()) or found)
    return found


def let_in(rig: Rig, keyring: Keyring, pair: Certificate = CAMERA) -> tuple[socket.socket, Sealer]:
    peer, sealer = begin(rig, keyring, pair)
    turns(rig, peer)
    assert take_frame(peer)[:6] == b"\x05READY"
    return peer, sealer


def crowd(rig: Rig, count: int, host: str | None = None) -> list[socket.socket]:
    """So many that say nothing, let in one after the other: the kernel's queue is shorter."""
    found = []
    for _ in range(count):
        found.append(rig.connect(host=host))
        rig.receive_all()
    return found


def refusals(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "jetsel.access"]


def test_a_request_and_its_answer_are_sealed(rig: Rig, keyring: Keyring) -> None:
    peer, sealer = let_in(rig, keyring)
    peer.sendall(sealer.message(b"{}", b"image"))
    ((token, identity, frames),) = one(rig)
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
    ((token, _, _),) = one(rig)
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


def test_many_that_say_nothing_make_room_at_once_for_who_comes_from_elsewhere(rig: Rig, keyring: Keyring) -> None:
    silent = crowd(rig, STRANGERS, "127.0.0.2")
    for pair in (CAMERA, PHONE):
        let_in(rig, keyring, pair)
        crowd(rig, 1, "127.0.0.2")  # in the place of itself, or of none
    assert hung_up(silent[0]), "the oldest"
    assert rig.server.clients == STRANGERS + 2


def test_of_one_network_those_that_just_came_are_left_to_go_on(
    rig: Rig, keyring: Keyring, caplog: pytest.LogCaptureFixture
) -> None:
    silent = crowd(rig, STRANGERS)
    surplus = rig.connect()
    rig.receive_all()
    assert hung_up(surplus)
    assert refusals(caplog) == ["127.0.0.1 was refused: too many come from there and show no key"]
    rig.clock.now_s += GRACE_S
    let_in(rig, keyring)
    assert hung_up(silent[0])


def test_who_was_let_in_is_none_of_those(rig: Rig, keyring: Keyring) -> None:
    peer, sealer = let_in(rig, keyring)
    crowd(rig, STRANGERS + 20)
    assert rig.server.clients == STRANGERS + 1
    rig.clock.now_s += 50.0
    rig.receive_all()
    assert rig.server.clients == 1
    peer.sendall(sealer.message(b"{}"))
    assert len(one(rig)) == 1


def test_a_key_has_its_share_of_connections_and_another_s_is_left_alone(
    rig: Rig, keyring: Keyring, caplog: pytest.LogCaptureFixture
) -> None:
    standing = [let_in(rig, keyring) for _ in range(SHARE)]
    surplus, _ = begin(rig, keyring)
    turns(rig, surplus)
    assert take_frame(surplus) == b"", "not even READY: its ZeroMQ keeps what it is to send, and tries again"
    let_in(rig, keyring, PHONE)
    standing[0][0].close()
    rig.receive_all()
    let_in(rig, keyring)
    assert not refusals(caplog), "it may ask, and is told so elsewhere"
    assert [m for m in caplog.messages if m.startswith("key camera has all the connections")]


def test_a_key_in_another_s_place_is_let_in_though_the_former_has_its_share_of_connections(
    rig: Rig, keyring: Keyring, folder: KeyFolder
) -> None:
    standing = [let_in(rig, keyring) for _ in range(SHARE)]
    new = generate()
    folder.allow("camera", new.public, is_admin=False, replace=True)
    keyring.reload()
    rig.clock.now_s += 1.0
    rig.receive_all()
    let_in(rig, keyring, new)
    peer, sealer = standing[0]
    peer.sendall(sealer.message(b"{}"))
    ((_, identity, _),) = one(rig)
    assert identity.refusal, "it is told so, as long as it is one of few"


def test_of_those_whose_key_was_revoked_a_few_are_left_to_hear_so(
    rig: Rig, keyring: Keyring, folder: KeyFolder
) -> None:
    for number in range(REVOKED_KEPT):
        pair = generate()
        folder.allow(f"laptop-{number}", pair.public, is_admin=False)
        keyring.reload()
        for _ in range(SHARE):
            let_in(rig, keyring, pair)
    let_in(rig, keyring)
    for number in range(REVOKED_KEPT):
        folder.revoke(f"laptop-{number}")
    keyring.reload()
    rig.clock.now_s += 1.0
    rig.receive_all()
    assert rig.server.clients == REVOKED_KEPT + 1
    rig.clock.now_s += 1.0
    rig.receive_all()
    assert rig.server.clients == REVOKED_KEPT + 1


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
    until(lambda: rig.receive_all() == 0 and rig.server.clients == 0)
    assert hung_up(peer)
    assert refusals(caplog) == [f"127.0.0.1 was refused: {reason}"]


def test_a_key_that_nobody_knows_is_told_so_and_logged(
    rig: Rig, keyring: Keyring, caplog: pytest.LogCaptureFixture
) -> None:
    stranger = generate()
    peer, _ = begin(rig, keyring, stranger)
    turns(rig, peer)
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


def test_what_is_behind_a_good_handshake_is_no_refusal(
    rig: Rig, keyring: Keyring, caplog: pytest.LogCaptureFixture
) -> None:
    peer, _ = begin(rig, keyring)
    peer.sendall(b"\x00\x02{}")
    until(lambda: rig.receive_all() == 0 and rig.server.clients == 0)
    assert not refusals(caplog), "whoever broke off had shown an allowed key"


def test_the_oldest_of_whoever_has_most_makes_room() -> None:
    clock = Clock()
    strangers = Strangers[str](clock)
    assert strangers.first_to_go("a") is None
    for token, (network, name) in enumerate([("a", "first"), ("a", "second"), ("b", "other")]):
        strangers.enter(token, network, name)
        clock.now_s += 0.01
    assert strangers.first_to_go("b") == strangers.first_to_go("c") == "first"
    assert strangers.first_to_go("a") is None, "it has just come"
    clock.now_s += GRACE_S
    assert strangers.first_to_go("a") == "first"
    strangers.leave(0)
    assert strangers.first_to_go("a") == "other", "of as many, another's"
    for token in (1, 2, 2, 7):
        strangers.leave(token)
    assert strangers.first_to_go("a") is None


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
    ],
)
def test_all_of_a_network_of_ipv6_is_one_peer(address: str, network: str) -> None:
    assert network_of(address) == network
