"""CURVE, as the end that has the server's key speaks it (ZeroMQ RFC 26, whose sections are named below).

The cryptography is libsodium's. Each connection has keys of its own on both sides, made for it and forgotten with it.
"""

from __future__ import annotations

import secrets
import struct

from nacl.bindings import (
    crypto_box_beforenm,
    crypto_box_easy_afternm,
    crypto_box_keypair,
    crypto_box_open_easy,
    crypto_box_open_easy_afternm,
)
from nacl.exceptions import CryptoError

from jetsel.daemon.access.keyring import Keyring
from jetsel.daemon.identity import Identity
from jetsel.daemon.zmtp.mechanism import RefusedError
from jetsel.daemon.zmtp.wire import (
    COMMAND,
    MORE,
    ProtocolError,
    check_metadata,
    framed,
    greeting_of,
    mechanism_of,
    metadata,
)
from jetsel.keys import z85

_KEY, _SHORT, _LONG, _MAC = 32, 8, 16, 16  # bytes of a key, of what a nonce has beside its prefix, of a box's tag
_HELLO, _WELCOME, _INITIATE = b"\x05HELLO\x01\x00", b"\x07WELCOME", b"\x08INITIATE"
_READY, _ERROR, _MESSAGE = b"\x05READY", b"\x05ERROR", b"\x07MESSAGE"
_PADDING = 72  # of HELLO, which is longer than its answer, so that nobody is flooded by way of us
_HELLO_BYTES = len(_HELLO) + _PADDING + _KEY + _SHORT + 64 + _MAC
_COOKIE_BYTES = 96
_VOUCH_BYTES = 2 * _KEY + _MAC
_INITIATE_BYTES = len(_INITIATE) + _COOKIE_BYTES + _SHORT + _KEY + _LONG + _VOUCH_BYTES + _MAC  # at least
_BOX_AT = len(_MESSAGE) + _SHORT
_NOT_ALLOWED = b"400"  # as libzmq words it, whose clients tell their application so (RFC 27, status codes)

ANOTHER_KEY = "it expects another server's key: give it this daemon's server.key"
NO_KEY = "it has no key where one is needed"


class Curve:
    """See Mechanism: one peer that is to show a key, and is known by it from then on."""

    greeting = greeting_of(b"CURVE", as_server=True)
    overhead_bytes = _BOX_AT + _MAC + 1

    def __init__(self, keyring: Keyring, address: str) -> None:
        """keyring: the daemon's own key, and whose are let in. address: what the peer is called until it shows one."""
        self._keyring = keyring
        self._stranger = Identity(address)
        self._public = ""  # the peer's, Z85
        self._their_transient = b""
        self._our_transient = b""  # the secret half
        self._cookie = b""
        self._shared = b""  # the key of this connection
        self._last_nonce = -1  # of the peer's
        self._next_nonce = 1
        self._has_welcomed = False
        self.is_open = False

    @property
    def identity(self) -> Identity:
        """Whom the key belongs to as keys are now; an address where none was shown."""
        return self._keyring.identify(self._public) if self._public else self._stranger

    def greeted(self, theirs: bytes) -> bytes:
        """See Mechanism."""
        if mechanism_of(theirs) != b"CURVE":
            raise ProtocolError(NO_KEY)
        return b""

    def heard(self, command: bytes) -> bytes:
        """See Mechanism."""
        try:
            return self._initiate(command) if self._has_welcomed else self._hello(command)
        except CryptoError as error:  # also where a public key is of small order
            raise ProtocolError("a handshake that does not hold") from error

    def _hello(self, command: bytes) -> bytes:
        """The client's first word, and what is answered ("The HELLO Command", "The WELCOME Command")."""
        if len(command) != _HELLO_BYTES or not command.startswith(_HELLO):
            raise ProtocolError("no HELLO of CURVE 1.0")
        at = len(_HELLO) + _PADDING
        self._their_transient = command[at : at + _KEY]
        nonce = command[at + _KEY : at + _KEY + _SHORT]
        self._take(nonce)
        key = crypto_box_beforenm(self._their_transient, self._keyring.secret_key)
        try:
            crypto_box_open_easy_afternm(command[at + _KEY + _SHORT :], b"CurveZMQHELLO---" + nonce, key)
        except CryptoError:
            raise ProtocolError(ANOTHER_KEY) from None
        public, self._our_transient = crypto_box_keypair()
        # The cookie is there for servers that keep nothing of a peer until it comes back; this one keeps it all.
        self._cookie = secrets.token_bytes(_COOKIE_BYTES)
        nonce = secrets.token_bytes(_LONG)
        box = crypto_box_easy_afternm(public + self._cookie, b"WELCOME-" + nonce, key)
        self._has_welcomed = True
        return framed(COMMAND, _WELCOME + nonce + box)

    def _initiate(self, command: bytes) -> bytes:
        """The client shows its key ("The INITIATE Command"), and is let in ("The READY Command") or refused."""
        if len(command) < _INITIATE_BYTES or not command.startswith(_INITIATE):
            raise ProtocolError("no INITIATE")
        at = len(_INITIATE) + _COOKIE_BYTES
        if not secrets.compare_digest(command[len(_INITIATE) : at], self._cookie):
            raise ProtocolError("another connection's cookie")
        nonce = command[at : at + _SHORT]
        self._take(nonce)
        self._shared = crypto_box_beforenm(self._their_transient, self._our_transient)
        said = crypto_box_open_easy_afternm(command[at + _SHORT :], b"CurveZMQINITIATE" + nonce, self._shared)
        vouch_at = _KEY + _LONG
        public, nonce, rest_at = said[:_KEY], said[_KEY:vouch_at], vouch_at + _VOUCH_BYTES
        vouched = crypto_box_open_easy(said[vouch_at:rest_at], b"VOUCH---" + nonce, public, self._our_transient)
        if vouched != self._their_transient + self._keyring.public_key:
            raise ProtocolError("a vouch for another connection")
        shown = z85.encode(public)
        if self._keyring.find(shown) is None:
            answer = framed(COMMAND, _ERROR + bytes((len(_NOT_ALLOWED),)) + _NOT_ALLOWED)
            raise RefusedError(f"its key {shown} is not allowed: jetsel keys allow", answer)
        check_metadata(said[rest_at:])
        self._public = shown
        self._our_transient = self._their_transient = self._cookie = b""  # the shared key is all that is needed now
        self.is_open = True
        nonce = self._nonce()
        return framed(COMMAND, _READY + nonce + self._box(b"CurveZMQREADY---", nonce, metadata()))

    def opened(self, flags: int, body: memoryview) -> tuple[int, memoryview]:
        """See Mechanism, and "The MESSAGE Command"; a box holds flags, 1 for MORE and 2 for COMMAND, then the body."""
        if flags & MORE or len(body) <= self.overhead_bytes - 1 or body[: len(_MESSAGE)] != _MESSAGE:
            raise ProtocolError("no MESSAGE")
        nonce = bytes(body[len(_MESSAGE) : _BOX_AT])
        self._take(nonce)
        try:
            said = crypto_box_open_easy_afternm(bytes(body[_BOX_AT:]), b"CurveZMQMESSAGEC" + nonce, self._shared)
        except CryptoError:
            raise ProtocolError("a box that was changed") from None
        if said[0] & ~3:
            raise ProtocolError("a flag that there is not")
        return (MORE if said[0] & 1 else 0) | (COMMAND if said[0] & 2 else 0), memoryview(said)[1:]

    def sealed(self, flags: int, body: bytes) -> bytes:
        """See Mechanism."""
        nonce = self._nonce()
        inner = bytes((bool(flags & MORE) | bool(flags & COMMAND) << 1,))
        return framed(0, _MESSAGE + nonce + self._box(b"CurveZMQMESSAGES", nonce, inner + body))

    def _box(self, prefix: bytes, nonce: bytes, body: bytes) -> bytes:
        return crypto_box_easy_afternm(body, prefix + nonce, self._shared)

    def _take(self, nonce: bytes) -> None:
        """Raise ProtocolError where the peer's nonce is not larger than all before: somebody repeats what it sent."""
        number = int.from_bytes(nonce, "big")
        if number <= self._last_nonce:
            raise ProtocolError("a nonce that came before")
        self._last_nonce = number

    def _nonce(self) -> bytes:
        number, self._next_nonce = self._next_nonce, self._next_nonce + 1
        return struct.pack(">Q", number)
