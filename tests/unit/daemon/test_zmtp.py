"""One connection, byte by byte: what is a message, what is not, and what is answered by the protocol itself."""

import os
import socket
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetsel.daemon.identity import UserIdentity
from jetsel.daemon.zmtp import COMMAND, IN_PLACE_BYTES, MAX_COMMAND_BYTES, MOST_PARTS, ProtocolError, ZmtpConnection
from tests.system.raw import frame, greeting, message, ready

MESSAGE_BYTES = 150_000
HELLO = greeting() + ready()


class Pair:
    """A connection as the port reads it, and the peer at its other end."""

    def __init__(self) -> None:
        self.peer, ours = socket.socketpair()
        ours.setblocking(False)
        self.connection = ZmtpConnection(ours, UserIdentity(7, 7), MESSAGE_BYTES)

    def tell(self, data: bytes) -> list[list[bytes]]:
        """Send this; return the messages that have come by then."""
        found: list[list[bytes]] = []
        for at in range(0, len(data), 65_536):  # what the kernel takes while nobody reads
            self.peer.sendall(data[at : at + 65_536])
            while (come := self.connection.receive()) or not self.connection.is_drained:
                found += [[bytes(part) for part in each] for each in come]
        return found

    def said(self) -> bytes:
        """What the peer was sent."""
        return self.peer.recv(100_000, socket.MSG_DONTWAIT)

    def close(self) -> None:
        self.peer.close()
        self.connection.peer.close()


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.close()


SIZES = st.sampled_from([0, 1, 255, 256, IN_PLACE_BYTES - 1, IN_PLACE_BYTES, 5000, 60_000])


@given(
    messages=st.lists(st.lists(SIZES, min_size=1, max_size=2), min_size=1, max_size=6),
    cuts=st.lists(st.integers(1, 9000), min_size=1, max_size=50),
)
def test_messages_come_as_they_were_sent_however_they_are_cut(messages: list[list[int]], cuts: list[int]) -> None:
    pair = Pair()
    sent = [[os.urandom(size) for size in sizes] for sizes in messages]
    rest = HELLO + b"".join(message(*parts) for parts in sent)
    found = []
    for cut in [*cuts, len(rest)]:
        found += pair.tell(rest[:cut])
        rest = rest[cut:]
    assert found == sent
    assert pair.connection.held_bytes == 0
    pair.close()


def test_a_part_holds_no_more_than_is_counted_whatever_came_with_it(pair: Pair) -> None:
    pair.tell(HELLO)
    ignored = bytes((COMMAND, 45)) + b"\x04JUNK" + bytes(40)
    tracemalloc.start()
    try:
        for _ in range(20):
            assert pair.tell(b"\x01\x01x" + ignored * 40) == []
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert pair.connection.held_bytes == 20
    assert held_bytes < 20 * 1000, "the rest of what was read with it, some 2,000 bytes each"


def test_a_ping_is_answered_between_the_frames_of_a_message_too(pair: Pair) -> None:
    pair.tell(HELLO)
    pair.said()
    assert pair.tell(b"\x01\x01a" + b"\x04\x09\x04PING\0\0ab" + b"\x00\x01b") == [[b"a", b"b"]]
    assert pair.said() == b"\x04\x07\x04PONGab"
    assert pair.tell(b"\x04\x07\x04PONGab" + b"\x04\x05\x04WHAT") == [], "these are nobody's business"


def test_replies_that_the_peer_does_not_read_are_kept_in_their_order(pair: Pair) -> None:
    replies = [b"%d" % number * 50_000 for number in range(10)]
    for reply in replies:
        pair.connection.send((b"", reply))
    whole = b"".join(message(b"", reply) for reply in replies)
    assert 0 < pair.connection.unsent_bytes < len(whole)
    assert pair.connection.held_bytes == pair.connection.unsent_bytes
    found = b""
    while len(found) < len(whole):
        found += pair.peer.recv(100_000)
        pair.connection.flush()
    assert found == whole
    assert (pair.connection.unsent_bytes, len(pair.connection.unsent)) == (0, 0)


REFUSED = (
    (b"GET / HTTP/1.1\r\n", "no greeting"),
    (greeting(b"CURVE"), "another security mechanism"),
    (greeting()[:10] + b"\x01" + greeting()[11:], "no greeting"),
    (greeting() + b"\x00\x02{}", "before READY"),
    (greeting() + b"\x04\x05\x04PING", "did not send READY"),
    (greeting() + ready(Socket_Type=b"SUB"), "cannot connect to a ROUTER"),
    (greeting() + b"\x04\x0b\x05READY\x00\x00\x00\x00\x09", "cut off"),
    (greeting() + b"\x06" + (MAX_COMMAND_BYTES + 1).to_bytes(8, "big"), "a frame of"),
    (HELLO + b"\x08\x00", "flag"),
    (HELLO + frame(b"", announced=MESSAGE_BYTES + 1), "a frame of"),
    (HELLO + message(bytes(MESSAGE_BYTES - 10), bytes(11)), "a frame of"),
    (HELLO + frame(b"", announced=2**63), "a frame of"),
    (HELLO + b"\x01\x00" * MOST_PARTS, "parts"),
    (HELLO + b"\x06" + (MAX_COMMAND_BYTES + 1).to_bytes(8, "big"), "a frame of"),
)


def test_what_zmtp_does_not_allow_or_nobody_needs_is_refused() -> None:
    for said, words in REFUSED:
        pair = Pair()
        with pytest.raises(ProtocolError, match=words):
            pair.tell(said)
        assert pair.connection.held_bytes <= MESSAGE_BYTES + 100
        pair.close()
