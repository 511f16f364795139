"""A CURVE client made of bytes (ZeroMQ RFC 26), for what no ZeroMQ library says."""

from __future__ import annotations

import secrets
import socket
import struct

from nacl.bindings import (
    crypto_box_beforenm,
    crypto_box_easy,
    crypto_box_easy_afternm,
    crypto_box_keypair,
    crypto_box_open_easy,
    crypto_box_open_easy_afternm,
)

from jetsel.daemon.zmtp.wire import COMMAND, GREETING_BYTES, LONG, LONGEST_HEAD, MORE, SHORTEST_HEAD, framed
from jetsel.keys import Certificate, z85
from tests.system.raw import greeting, properties

HELLO_BYTES, WELCOME_BYTES = 200, 168


class Sealer:
    """One connection's keys. nonce: what the next box has; set it to repeat one."""

    def __init__(self, pair: Certificate, server: str) -> None:
        """pair: shown to the server. server: the key that it is expected to have, Z85."""
        self.public, self.secret = z85.decode(pair.public), z85.decode(pair.secret or "")
        self.server = z85.decode(server)
        self.transient, self._transient_secret = crypto_box_keypair()
        self.cookie = b""
        self.shared = b""
        self.nonce = 1
        self._server_transient = b""

    def _take_nonce(self) -> bytes:
        self.nonce += 1
        return struct.pack(">Q", self.nonce - 1)

    def hello(self, signed: bytes = bytes(64)) -> bytes:
        """The command; signed: what its box has."""
        nonce = self._take_nonce()
        box = crypto_box_easy(signed, b"CurveZMQHELLO---" + nonce, self.server, self._transient_secret)
        return framed(COMMAND, b"\x05HELLO\x01\x00" + bytes(72) + self.transient + nonce + box)

    def welcomed(self, body: bytes) -> None:
        """Take the server's answer."""
        assert len(body) == WELCOME_BYTES
        assert body[:8] == b"\x07WELCOME"
        said = crypto_box_open_easy(body[24:], b"WELCOME-" + body[8:24], self.server, self._transient_secret)
        self._server_transient, self.cookie = said[:32], said[32:]
        self.shared = crypto_box_beforenm(self._server_transient, self._transient_secret)

    def vouch(self, transient: bytes | None = None, server: bytes | None = None) -> bytes:
        """That this connection's key is ours, for this server: or another's."""
        nonce = secrets.token_bytes(16)
        said = (transient or self.transient) + (server or self.server)
        return nonce + crypto_box_easy(said, b"VOUCH---" + nonce, self._server_transient, self.secret)

    def initiate(
        self, vouch: bytes | None = None, cookie: bytes | None = None, said: bytes | None = None, **more: bytes
    ) -> bytes:
        """The command; more: properties, as of READY; said: all that its box has."""
        nonce = self._take_nonce()
        if said is None:
            said = self.public + (vouch or self.vouch()) + properties(**more)
        box = crypto_box_easy_afternm(said, b"CurveZMQINITIATE" + nonce, self.shared)
        return framed(COMMAND, b"\x08INITIATE" + (cookie or self.cookie) + nonce + box)

    def frame(self, body: bytes, flags: int = 0, outer: int = 0) -> bytes:
        """A sealed frame. flags: within, 1 for MORE and 2 for COMMAND; outer: of the frame itself."""
        nonce = self._take_nonce()
        box = crypto_box_easy_afternm(bytes((flags,)) + body, b"CurveZMQMESSAGEC" + nonce, self.shared)
        return framed(outer, b"\x07MESSAGE" + nonce + box)

    def message(self, *frames: bytes) -> bytes:
        """A whole message."""
        return b"".join(self.frame(body, MORE if at < len(frames) - 1 else 0) for at, body in enumerate(frames))

    def opened(self, body: bytes) -> tuple[int, bytes]:
        """Flags and content of a sealed frame that came."""
        assert body[:8] == b"\x07MESSAGE"
        said = crypto_box_open_easy_afternm(body[16:], b"CurveZMQMESSAGES" + body[8:16], self.shared)
        return said[0], said[1:]


def take_frame(peer: socket.socket) -> bytes:
    """Read one frame's body; empty where the other side has hung up."""
    flags = peer.recv(1)
    if not flags:
        return b""
    size_bytes = LONGEST_HEAD - 1 if flags[0] & LONG else SHORTEST_HEAD - 1
    return exactly(peer, int.from_bytes(exactly(peer, size_bytes), "big"))


def exactly(peer: socket.socket, count: int) -> bytes:
    """Read so many bytes; raises ConnectionError where the other side hangs up before that."""
    found = b""
    while len(found) < count:  # a socket with a timeout returns what there is, whatever MSG_WAITALL says
        more = peer.recv(count - len(found))
        if not more:
            raise ConnectionError("it was hung up on")
        found += more
    return found


def shake(peer: socket.socket, sealer: Sealer) -> None:
    """Go through the handshake."""
    peer.sendall(greeting(b"CURVE") + sealer.hello())
    exactly(peer, GREETING_BYTES)
    sealer.welcomed(take_frame(peer))
    peer.sendall(sealer.initiate())
    assert take_frame(peer)[:6] == b"\x05READY"
