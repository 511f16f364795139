"""How peers are greeted and known, and what their frames are wrapped in: the shape of that, and ZMTP's NULL."""

from __future__ import annotations

from typing import Protocol

from jetsel.daemon.identity import Identity
from jetsel.daemon.zmtp.wire import (
    COMMAND,
    ProtocolError,
    check_metadata,
    framed,
    greeting_of,
    mechanism_of,
    metadata,
)

_READY = b"\x05READY"


class RefusedError(ProtocolError):
    """A peer that is told so before it is hung up on. answer: the frame that tells it."""

    def __init__(self, reason: str, answer: bytes) -> None:
        super().__init__(reason)
        self.answer = answer


class Mechanism(Protocol):
    """One peer's. For whoever holds the server's lock."""

    greeting: bytes
    overhead_bytes: int  # that a sealed frame is longer than what is in it
    is_open: bool  # the handshake is through

    @property
    def identity(self) -> Identity:
        """Who the peer is, as is known now."""

    def greeted(self, theirs: bytes) -> bytes:
        """Look at the peer's greeting; return the frame to say next, empty where there is none.

        Raises ProtocolError, as all of these do.
        """

    def heard(self, command: bytes) -> bytes:
        """Take the next command of the handshake; return the frame that answers it, empty where none does."""

    def opened(self, flags: int, body: memoryview) -> tuple[int, memoryview]:
        """Return flags and body of a frame as its sender meant them."""

    def sealed(self, flags: int, body: bytes) -> bytes:
        """Return a whole frame, to be sent in the order in which it was sealed, or never."""


class Null:
    """For peers of this machine, whom the kernel knows, or who are nobody: frames go as they are."""

    greeting = greeting_of(b"NULL", as_server=False)
    overhead_bytes = 0

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.is_open = False

    def greeted(self, theirs: bytes) -> bytes:
        """See Mechanism."""
        if mechanism_of(theirs) != b"NULL":
            raise ProtocolError("another mechanism than NULL")
        return framed(COMMAND, _READY + metadata())

    def heard(self, command: bytes) -> bytes:
        """See Mechanism."""
        if not command.startswith(_READY):
            raise ProtocolError("no READY")
        check_metadata(command[len(_READY) :])
        self.is_open = True
        return b""

    def opened(self, flags: int, body: memoryview) -> tuple[int, memoryview]:
        """See Mechanism."""
        return flags, body

    def sealed(self, flags: int, body: bytes) -> bytes:
        """See Mechanism."""
        return framed(flags, body)
