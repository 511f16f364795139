"""Which routing ids libzmq gives its peers, and which a peer cannot have come by honestly.

A peer that names no identity gets five bytes: a zero, and a number that counts up by one for each such peer (libzmq
4.3.5, src/router.cpp, `router_t::identify_peer`). A peer may name any identity up to the limit of a message, though
ZMTP reserves those that begin with a zero and allows 255 bytes (ZeroMQ RFC 37, Identity). libzmq believes it, copies it
for each message, and ends the process where the number that comes next is taken (src/socket_base.cpp,
`routing_socket_base_t::add_out_pipe`). The numbers begin with what rand(3) says, the same in every process: here it is
seeded from the system first, and whoever names an id that begins with a zero and is none of those given out is found.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from typing import Any

import zmq

LONGEST_ID = 255  # ZeroMQ RFC 37
_SIZE = 5
_NUMBERS = 1 << 32
SLACK = 10_000  # given out and not heard of: more than connections may stand
PEERS_PER_S = 5_000  # no more can come: the gate's pause between two


def seed() -> None:
    """Have libzmq begin at a number that nobody can know; to be called before a context is made (srand(3))."""
    ctypes.CDLL(None).srand(int.from_bytes(os.urandom(4), "little"))


class RoutingIds:
    """For whoever holds the socket's lock."""

    def __init__(self, first: bytes, now: Callable[[], float] = time.monotonic) -> None:
        """first: the first id that libzmq has given out."""
        self._first = int.from_bytes(first[1:], "big")
        self._last = 0
        self._seen_s = now()
        self._now = now

    def is_sound(self, name: bytes) -> bool:
        """Whether a peer may have this id: one of its own that ZMTP allows, or one that libzmq has given it."""
        if not name.startswith(b"\0"):
            return len(name) <= LONGEST_ID
        if len(name) != _SIZE:
            return False
        number = (int.from_bytes(name[1:], "big") - self._first) % _NUMBERS
        if number <= self._last:
            return True
        if number > self._last + SLACK + PEERS_PER_S * (self._now() - self._seen_s):
            return False
        self._last, self._seen_s = number, self._now()
        return True


def first_of(context: zmq.Context[Any], router: zmq.Socket[bytes]) -> bytes:
    """Return the first id that a ROUTER, which nobody can reach yet, gives out: to a peer of our own."""
    endpoint = f"inproc://first-{id(router)}"
    router.bind(endpoint)
    with context.socket(zmq.DEALER) as peer:
        peer.connect(endpoint)
        peer.send(b"")
        name, _ = router.recv_multipart()
    router.unbind(endpoint)
    return bytes(name)
