"""One connection, byte by byte: what is a message, what is not, and what is answered by the protocol itself."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetsel.daemon.identity import Identity
from jetsel.daemon.zmtp.connection import FROM_HERE_BYTES, MOST_COMMANDS, MOST_PARTS
from jetsel.daemon.zmtp.mechanism import Null
from jetsel.daemon.zmtp.wire import COMMAND, MAX_COMMAND_BYTES, ProtocolError
from tests.system.raw import frame, greeting, message
from tests.system.raw import ready as asks
from tests.unit.daemon.zmtp.pair import FRAME_BYTES, Pair

HELLO = greeting() + asks()
SAID = b"\x04\x29\x05READY\x0bSocket-Type\x00\x00\x00\x06ROUTER\x08Identity\x00\x00\x00\x00"
ME = Identity("uid 7", (7, 7, 7))


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair(Null(ME))
    yield made
    made.close()


def test_a_part_holds_no_more_than_is_counted_whatever_came_with_it() -> None:
    pair = Pair(Null(ME))
    pair.tell(HELLO)
    ignored = bytes((COMMAND, 45)) + b"\x04JUNK" + bytes(40)
    tracemalloc.start()
    try:
        for _ in range(20):
            assert pair.tell(b"\x01\x01x" + ignored * 40) == []
            pair.connection.commands = 0  # the server has swept
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert pair.connection.held_bytes == 20
    assert held_bytes < 20 * 1000, "the rest of what was read with it, some 2,000 bytes each"
    pair.close()


def test_a_peer_that_sends_commands_without_end_is_refused(pair: Pair) -> None:
    pair.tell(HELLO)
    pair.tell(b"\x04\x00" * MOST_COMMANDS)
    with pytest.raises(ProtocolError, match="200 commands"):
        pair.tell(b"\x04\x00")
    pair.connection.commands = 0  # the server has swept
    pair.tell(b"\x04\x00" * MOST_COMMANDS)


def test_a_peer_is_greeted_at_once_and_told_that_it_may_ask_once_it_has(pair: Pair) -> None:
    assert pair.connection.to_send == [Null.greeting]
    assert pair.tell(greeting()) == []
    assert pair.connection.to_send == [Null.greeting, SAID]
    assert not pair.connection.is_open
    pair.tell(asks())
    assert pair.connection.is_open
    assert pair.connection.is_between


SIZES = st.sampled_from([0, 1, 2, 255, 256, FROM_HERE_BYTES - 1, FROM_HERE_BYTES, 5000, 70_000])


@given(
    messages=st.lists(st.lists(SIZES, min_size=1, max_size=4), min_size=1, max_size=6),
    cuts=st.lists(st.integers(1, 9000), min_size=1, max_size=50),
)
def test_messages_come_as_they_were_sent_however_they_are_cut(messages: list[list[int]], cuts: list[int]) -> None:
    pair = Pair(Null(ME))
    sent = [tuple(os.urandom(size) for size in sizes) for sizes in messages]
    rest = HELLO + b"".join(message(*parts) for parts in sent)
    found = []
    for cut in [*cuts, len(rest)]:
        found += pair.tell(rest[:cut])
        rest = rest[cut:]
        if rest:
            assert pair.connection.held_bytes <= len(HELLO) + sum(len(message(*parts)) for parts in sent)
    assert found == [list(parts) for parts in sent]
    assert pair.connection.is_between
    assert pair.connection.held_bytes == 0
    pair.close()


def test_what_is_not_whole_is_held_and_counted(pair: Pair) -> None:
    assert pair.tell(HELLO + frame(bytes(5000), announced=90_000)) == []
    assert not pair.connection.is_between
    assert pair.connection.held_bytes == 5000
    pair.tell(bytes(85_000))
    assert pair.connection.held_bytes == 0
    assert pair.connection.is_between


def test_a_ping_is_answered_between_the_frames_of_a_message_too(pair: Pair) -> None:
    ping = b"\x04\x09\x04PING\0\0ab"
    (found,) = pair.tell(HELLO + b"\x01\x01a" + ping + b"\x00\x01b")
    assert found == [b"a", b"b"]
    assert pair.connection.to_send[2:] == [b"\x04\x07\x04PONGab"]
    assert pair.tell(b"\x04\x07\x04PONGab" + b"\x04\x05\x04WHAT") == [], "these are nobody's business"
    assert len(pair.connection.to_send) == 3


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"GET / HTTP/1.1\r\n".ljust(64), "no greeting"),
        (greeting(b"CURVE"), "another mechanism"),
        (greeting()[:10] + b"\x01" + greeting()[11:], "no greeting"),
        (greeting() + b"\x00\x02{}", "before READY"),
        (greeting() + b"\x04\x05\x04PING", "no READY"),
        (greeting() + asks(Socket_Type=b"SUB"), "no peer"),
        (greeting() + asks(Identity=b"\0me"), "no name"),
        (greeting() + b"\x04\x0c\x05READY\x0bSocke", "cut off"),
        (greeting() + b"\x04\x0b\x05READY\x00\x00\x00\x00\x09", "cut off"),
        (greeting() + b"\x06" + (MAX_COMMAND_BYTES + 1).to_bytes(8, "big"), "a frame of"),
        (HELLO + b"\x08\x00", "a flag"),
        (HELLO + frame(b"", announced=FRAME_BYTES + 1), "a frame of"),
        (HELLO + frame(b"", announced=2**63), "a frame of"),
        (HELLO + b"\x01\x00" * MOST_PARTS, "parts"),
        (HELLO + b"\x06" + (MAX_COMMAND_BYTES + 1).to_bytes(8, "big"), "a frame of"),
    ],
)
def test_what_zmtp_does_not_allow_or_nobody_needs_is_refused(pair: Pair, said: bytes, words: str) -> None:
    with pytest.raises(ProtocolError, match=words):
        pair.tell(said)


def test_a_message_of_many_large_frames_is_refused_before_it_is_held(pair: Pair) -> None:
    large = b"\x03" + FRAME_BYTES.to_bytes(8, "big") + bytes(FRAME_BYTES)
    with pytest.raises(ProtocolError, match="a frame of"):
        pair.tell(HELLO + 3 * large)
    assert pair.connection.held_bytes <= 2 * FRAME_BYTES
