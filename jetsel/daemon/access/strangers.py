"""Connections that have not asked to be let in yet, and why one of them ended: those peers are refused without a word.

libzmq's monitor tells of a failed handshake without saying whose it was. But it tells each connection's descriptor when
it is accepted and when it has ended, and one I/O thread tells everything in order. A peer that is gone again at once,
within tens of microseconds as only one on this very machine can be, has no address any more when it is asked for.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import zmq

EVENTS = zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
UNKNOWN = "a peer that was gone before its address was known"


class Refused(NamedTuple):
    """A peer that was not let in. address: without its port."""

    address: str
    reason: str


class _Stranger(NamedTuple):
    address: str
    since_s: float


class Strangers:
    """By descriptor, as many as there are connections. For one thread."""

    def __init__(self, peer_timeout_s: float, address_of: Callable[[int], str | None] | None = None) -> None:
        self._timeout_s = peer_timeout_s
        self._address_of = address_of or peer_address
        self._known: dict[int, _Stranger] = {}
        self._fault: int | None = None

    def __len__(self) -> int:
        return len(self._known)

    def take(self, events: Sequence[dict[str, Any]]) -> list[Refused]:
        """Take note of what the monitor told, all that is there at once; return who was refused."""
        refused = []
        for number, event in enumerate(events):
            kind, value = event["event"], event["value"]
            if kind == zmq.EVENT_ACCEPTED:
                reused = any(e["event"] == kind and e["value"] == value for e in events[number + 1 :])
                address = None if reused else self._address_of(value)
                self._known[value] = _Stranger(address or UNKNOWN, time.monotonic())
            elif kind == zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL:
                self._fault = value  # its connection is the next to end
            else:
                stranger, fault = self._known.pop(value, None), self._fault
                self._fault = None
                if stranger is not None:
                    refused.append(Refused(stranger.address, self._reason(stranger, fault)))
        return refused

    def asked(self, address: str) -> None:
        """Somebody at this address has asked to be let in: whether it was is told by who answered."""
        for descriptor in [d for d, stranger in self._known.items() if stranger.address == address]:
            del self._known[descriptor]

    def _reason(self, stranger: _Stranger, fault: int | None) -> str:
        if fault == zmq.PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC:
            return "it expects another server's key: give it this daemon's server.key"
        if fault == zmq.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH:
            return "it has no key where one is needed"
        if time.monotonic() - stranger.since_s >= self._timeout_s:
            return f"it did not greet within {self._timeout_s:g} s"
        return "it hung up before it showed a key, or does not speak ZMTP: a client without keys does so"


def peer_address(descriptor: int) -> str | None:
    """Return the address that a connection comes from, None where it has ended already (getpeername(2): ENOTCONN)."""
    try:
        with socket.socket(fileno=os.dup(descriptor)) as copy:
            name = copy.getpeername()
    except OSError:
        return None
    return str(name[0]) if isinstance(name, tuple) else None  # a path: the descriptor is another socket's by now
