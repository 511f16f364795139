"""CURVE byte by byte: who is let in, who is refused, and that nothing is taken that was not sealed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetsel.daemon.access.keyring import Keyring
from jetsel.daemon.identity import Identity
from jetsel.daemon.zmtp.connection import FROM_HERE_BYTES, MOST_COMMANDS, MOST_PARTS
from jetsel.daemon.zmtp.curve import ANOTHER_KEY, NO_KEY, Curve
from jetsel.daemon.zmtp.mechanism import RefusedError
from jetsel.daemon.zmtp.wire import COMMAND, GREETING_BYTES, MAX_COMMAND_BYTES, MORE, ProtocolError
from jetsel.keys import Certificate, KeyFolder, generate
from tests.system.raw import frame, greeting, ready
from tests.system.sealed import HELLO_BYTES, Sealer
from tests.unit.daemon.zmtp.pair import FRAME_BYTES, Pair

CAMERA = generate()
HELLO_HEAD = 2  # of HELLO's and, as long as it has no more than 255 bytes, of any frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> KeyFolder:
    found = KeyFolder(tmp_path_factory.mktemp("curve") / "keys")
    found.make_server(None)
    found.allow("camera", CAMERA.public, is_admin=False)
    return found


@pytest.fixture(scope="module")
def keyring(folder: KeyFolder) -> Keyring:
    return Keyring(str(folder.path))


class Guarded(Pair):
    """A connection that asks for a key, and a client's end of it."""

    def __init__(self, keyring: Keyring, pair: Certificate = CAMERA, server: str | None = None) -> None:
        super().__init__(Curve(keyring, "192.0.2.7"))
        self.sealer = Sealer(pair, server or keyring.server.public)

    def __enter__(self) -> Guarded:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def said(self) -> bytes:
        """Take what the protocol itself has answered; the body of its last frame."""
        said, self.connection.to_send = self.connection.to_send, []
        return said[-1][HELLO_HEAD:]

    def greet(self) -> None:
        self.tell(greeting(b"CURVE"))
        assert self.said() == Curve.greeting[HELLO_HEAD:]

    def welcome(self) -> None:
        self.greet()
        self.tell(self.sealer.hello())
        self.sealer.welcomed(self.said())

    def open(self) -> None:
        self.welcome()
        self.tell(self.sealer.initiate())
        assert self.said()[:6] == b"\x05READY"


@pytest.fixture
def pair(keyring: Keyring) -> Iterator[Guarded]:
    with Guarded(keyring) as made:
        yield made


def test_who_shows_an_allowed_key_is_known_by_its_name(pair: Guarded) -> None:
    pair.welcome()
    assert pair.connection.identity == Identity("192.0.2.7")
    assert not pair.connection.is_open
    pair.tell(pair.sealer.initiate())
    assert pair.connection.is_open
    assert pair.connection.is_between
    assert pair.connection.identity == Identity("key camera")


def test_a_standing_connection_has_its_key_s_rights_as_they_are_now(tmp_path: Path) -> None:
    folder = KeyFolder(tmp_path / "keys")
    folder.make_server(None)
    folder.allow("camera", CAMERA.public, is_admin=False)
    keyring = Keyring(str(folder.path))
    with Guarded(keyring) as pair:
        pair.open()
        folder.allow("camera", CAMERA.public, is_admin=True, replace=True)
        keyring.reload()
        assert pair.connection.identity.is_admin
        folder.revoke("camera")
        keyring.reload()
        assert pair.connection.identity.refusal


SIZES = st.sampled_from([0, 1, 2, 222, 223, 255, FROM_HERE_BYTES - 33, FROM_HERE_BYTES, 5000, 70_000])


@given(
    messages=st.lists(st.lists(SIZES, min_size=1, max_size=4), min_size=1, max_size=6),
    cuts=st.lists(st.integers(1, 9000), min_size=1, max_size=50),
)
def test_messages_come_as_they_were_sent_however_they_are_cut(
    keyring: Keyring, messages: list[list[int]], cuts: list[int]
) -> None:
    sent = [[os.urandom(size) for size in sizes] for sizes in messages]
    found = []
    with Guarded(keyring) as pair:
        pair.open()
        rest = b"".join(pair.sealer.message(*parts) for parts in sent)
        for cut in [*cuts, len(rest)]:
            found += pair.tell(rest[:cut])
            rest = rest[cut:]
        assert found == sent
        assert pair.connection.is_between
        assert pair.connection.held_bytes == 0


def test_what_is_answered_can_be_opened_and_is_as_it_was_meant(pair: Guarded) -> None:
    pair.open()
    first, second = pair.connection.sealed((b"", b"answer")), pair.connection.sealed((b"x" * 5000,))
    empty, answer = first[: HELLO_HEAD + 33], first[HELLO_HEAD + 33 :]
    assert pair.sealer.opened(empty[HELLO_HEAD:]) == (1, b"")
    assert pair.sealer.opened(answer[HELLO_HEAD:]) == (0, b"answer")
    assert pair.sealer.opened(second[9:]) == (0, b"x" * 5000)


def test_a_ping_is_answered_sealed_between_the_frames_of_a_message_too(pair: Guarded) -> None:
    pair.open()
    sealer = pair.sealer
    (found,) = pair.tell(sealer.frame(b"a", 1) + sealer.frame(b"\x04PING\0\0ab", 2) + sealer.frame(b"b"))
    assert found == [b"a", b"b"]
    assert sealer.opened(pair.said()) == (2, b"\x04PONGab")


def test_a_sealed_frame_may_be_called_a_command(pair: Guarded) -> None:
    # RFC 26 calls MESSAGE a command, and libzmq 4.3.5 does not mark it as one.
    pair.open()
    assert pair.tell(pair.sealer.frame(b"x" * FRAME_BYTES, outer=COMMAND)) == [[b"x" * FRAME_BYTES]]


def test_commands_without_end_are_refused(pair: Guarded) -> None:
    pair.open()
    for _ in range(MOST_COMMANDS):
        pair.tell(pair.sealer.frame(b"\x04WHAT", 2))
    with pytest.raises(ProtocolError, match="200 commands"):
        pair.tell(pair.sealer.frame(b"\x04WHAT", 2))


def test_a_frame_is_as_large_as_it_may_be_and_no_larger(pair: Guarded) -> None:
    pair.open()
    assert pair.tell(pair.sealer.frame(b"x" * FRAME_BYTES)) == [[b"x" * FRAME_BYTES]]
    with pytest.raises(ProtocolError, match="a frame of"):
        pair.tell(pair.sealer.frame(b"x" * (FRAME_BYTES + 1)))


def test_a_message_of_too_many_parts_is_refused(pair: Guarded) -> None:
    pair.open()
    for _ in range(MOST_PARTS - 1):
        pair.tell(pair.sealer.frame(b"", 1))
    with pytest.raises(ProtocolError, match="parts"):
        pair.tell(pair.sealer.frame(b"", 1))


def test_a_key_that_is_not_allowed_is_refused_and_told_so(keyring: Keyring) -> None:
    stranger = generate()
    with Guarded(keyring, stranger) as pair:
        pair.welcome()
        with pytest.raises(RefusedError) as caught:
            pair.tell(pair.sealer.initiate())
        assert caught.value.answer == b"\x04\x0a\x05ERROR\x03400"
        assert str(caught.value) == f"its key {stranger.public} is not allowed: jetsel keys allow"
        assert not pair.connection.is_open
        assert pair.connection.identity == Identity("192.0.2.7")


def test_who_expects_another_server_is_refused(keyring: Keyring) -> None:
    with Guarded(keyring, server=generate().public) as pair:
        pair.greet()
        with pytest.raises(ProtocolError, match=ANOTHER_KEY):
            pair.tell(pair.sealer.hello())


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"GET / HTTP/1.1\r\n", "no greeting"),
        (greeting(b"NULL"), NO_KEY),
        (greeting(b"PLAIN"), NO_KEY),
        (greeting(b"CURVE") + ready(), "no HELLO"),
        (greeting(b"CURVE") + frame(bytes(HELLO_BYTES)), "a frame of|before READY"),
        (greeting(b"CURVE") + b"\x04\xc8" + b"\x05HELLO\x02\x00" + bytes(192), "no HELLO"),
        (greeting(b"CURVE") + b"\x04\xc8" + b"\x05HELLO\x01\x00" + bytes(192), "does not hold"),  # 0 is of small order
        (greeting(b"CURVE") + b"\x06" + (MAX_COMMAND_BYTES + 1).to_bytes(8, "big"), "a frame of"),
        (greeting(b"CURVE") + b"\x00\x02{}", "before READY"),
    ],
)
def test_who_shows_no_key_is_refused(pair: Guarded, said: bytes, words: str) -> None:
    with pytest.raises(ProtocolError, match=words):
        pair.tell(said)
    assert not pair.connection.is_open


class Ends(NamedTuple):
    """Of this connection, and of another one that has come as far."""

    mine: Sealer
    other: Sealer


Saying = Callable[[Ends], bytes]


@pytest.mark.parametrize(
    ("say", "words"),
    [
        (lambda at: at.other.initiate(), "another connection's cookie"),
        (lambda at: at.mine.initiate(cookie=at.other.cookie), "another connection's cookie"),
        (lambda at: at.mine.initiate(at.other.vouch()), "does not hold"),
        (lambda at: at.mine.initiate(at.mine.vouch(transient=at.other.transient)), "a vouch for another"),
        (lambda at: at.mine.initiate(at.mine.vouch(server=at.other.transient)), "a vouch for another"),
        (lambda at: changed(at.mine.initiate()), "does not hold"),
        (lambda at: old(at.mine).initiate(), "a nonce that came before"),
        (lambda at: at.mine.initiate(Socket_Type=b"SUB"), "no peer"),
        (lambda at: at.mine.initiate(Identity=b"\0me"), "no name"),
        (lambda _: b"\x04\x09\x08INITIATE", "no INITIATE"),
        (lambda at: at.mine.hello(), "no INITIATE"),
    ],
)
def test_a_handshake_that_is_not_this_connection_s_opens_nothing(
    keyring: Keyring, pair: Guarded, say: Saying, words: str
) -> None:
    pair.welcome()
    with Guarded(keyring) as other:
        other.welcome()
        said = say(Ends(pair.sealer, other.sealer))
    with pytest.raises(ProtocolError, match=words):
        pair.tell(said)
    assert not pair.connection.is_open


def test_hello_that_was_changed_or_is_larger_is_refused(keyring: Keyring) -> None:
    for say, words in ((lambda s: changed(s.hello()), ANOTHER_KEY), (lambda s: s.hello(bytes(65)), "no HELLO")):
        with Guarded(keyring) as pair:
            pair.greet()
            with pytest.raises(ProtocolError, match=words):
                pair.tell(say(pair.sealer))


@pytest.mark.parametrize(
    ("say", "words"),
    [
        (lambda _: b"\x00\x02{}", "no MESSAGE"),
        (lambda _: b"\x04\x09\x04PING\0\0ab", "no MESSAGE"),
        (lambda _: b"\x00\x20\x07MESSAGE" + b"\xff" * 24, "no MESSAGE"),
        (lambda at: at.other.message(b"{}"), "a box that was changed"),
        (lambda at: changed(at.mine.message(b"{}")), "a box that was changed"),
        (lambda at: at.mine.frame(b"{}", flags=4), "a flag"),
        (lambda at: at.mine.frame(b"{}", outer=MORE), "no MESSAGE"),
        (lambda at: 2 * at.mine.message(b"{}"), "a nonce that came before"),
        (lambda at: old(at.mine).message(b"{}"), "a nonce that came before"),
        (lambda at: at.mine.initiate(), "no MESSAGE"),
    ],
)
def test_what_is_not_sealed_for_this_connection_is_refused(
    keyring: Keyring, pair: Guarded, say: Saying, words: str
) -> None:
    pair.open()
    with Guarded(keyring) as other:
        other.open()
        said = say(Ends(pair.sealer, other.sealer))
    with pytest.raises(ProtocolError, match=words):
        pair.tell(said)


def changed(sealed: bytes) -> bytes:
    return sealed[:-1] + bytes((sealed[-1] ^ 1,))


def old(sealer: Sealer) -> Sealer:
    """One that begins again to count."""
    sealer.nonce = 1
    return sealer


def test_the_greeting_says_that_this_end_has_the_server_s_key() -> None:
    assert len(Curve.greeting) == GREETING_BYTES
    assert Curve.greeting[12:33] == b"CURVE".ljust(20, b"\0") + b"\x01"
