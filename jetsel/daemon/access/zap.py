"""The answer to each handshake over tcp: may this peer connect, and what its messages carry as its identity.

The protocol is ZeroMQ RFC 27 (ZAP); libzmq asks over inproc, and keeps the user id that it is told as the property
User-Id of each of the peer's messages.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import NamedTuple

from zmq.utils import z85

from jetsel.daemon.access.keyring import Keyring
from jetsel.daemon.identity import Identity
from jetsel.keys.certificate import KEY_BYTES

ENDPOINT = "inproc://zeromq.zap.01"  # RFC 27
DOMAIN = b"jetsel"
VERSION = b"1.0"
ALLOWED, DENIED, FAULTY = b"200", b"400", b"500"
REVOKED = "a revoked key"
MADE_UP = "a peer without a key"


class Verdict(NamedTuple):
    """What libzmq is answered, and whom that was about. refusal: why it was not let in, None where it was."""

    reply: list[bytes]
    address: str
    refusal: str | None


class Handshakes:
    """Judges handshakes, and reads back from a message what it said of its sender.

    A peer may call any property its own when it connects, User-Id included. libzmq's own word counts before that; in
    case it ever did not, what we say of a peer begins with a token that only this process knows.
    """

    def __init__(self, keyring: Keyring) -> None:
        """keyring: whose keys are let in."""
        self._keyring = keyring
        self._token = f"{secrets.token_hex(16)}:"

    def judge(self, request: Sequence[bytes]) -> Verdict:
        """Answer one request: version, request id, domain, address, identity, mechanism, credentials."""
        if len(request) < 6 or request[0] != VERSION:
            return self._verdict(request, FAULTY, "a request that is none of ZAP 1.0")
        mechanism, credentials = request[5], request[6:]
        if mechanism != b"CURVE" or len(credentials) != 1 or len(credentials[0]) != KEY_BYTES:
            return self._verdict(request, DENIED, "it showed no key")
        public = z85.encode(credentials[0]).decode()
        if self._keyring.find(public) is None:
            return self._verdict(request, DENIED, f"its key {public} is not allowed: jetsel keys allow")
        return self._verdict(request, ALLOWED, None, public)

    def _verdict(self, request: Sequence[bytes], status: bytes, refusal: str | None, who: str = "") -> Verdict:
        request_id = request[1] if len(request) > 1 else b""
        address = request[3].decode("ascii", "replace") if len(request) > 3 else ""
        user_id = b"" if refusal else f"{self._token}{who}".encode()
        text = b"OK" if refusal is None else b"not allowed"
        return Verdict([VERSION, request_id, status, text, user_id, b""], address, refusal)

    def identify(self, user_id: str) -> Identity:
        """Return whom a message's User-Id tells of as keys are now."""
        if not user_id.startswith(self._token):
            return Identity(MADE_UP, refusal="this peer was let in without a key: connect with one that is allowed")
        key = self._keyring.find(user_id.removeprefix(self._token))
        if key is None:
            return Identity(REVOKED, refusal="this key was revoked: ask the daemon's owner for: jetsel keys allow")
        return Identity(f"key {key.name}", is_admin=key.is_admin)
