"""ZMTP 3.1 with the mechanism NULL, as a ROUTER needs it (ZeroMQ RFC 37; RFC 23): frames, and one connection.

A connection holds what its peer has sent of a message, and the replies that the peer has not read.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from jetsel.daemon.identity import UserIdentity

GREETING_BYTES = 64
SIGNATURE = b"\xff"  # the first byte of a greeting since ZMTP 2
MORE, LONG, COMMAND = 1, 2, 4  # flags of a frame
MAX_COMMAND_BYTES = 8192  # READY may have properties of the application; a PING has 23 bytes at most

GREETING = SIGNATURE + bytes(8) + b"\x7f\x03\x01" + b"NULL".ljust(20, b"\0") + bytes(32)
_MECHANISM = slice(12, 32)
_PING, _READY = b"\x04PING", b"\x05READY"
_TTL_BYTES, _CONTEXT_BYTES = 2, 16  # of PING
_MAY_ASK = frozenset((b"REQ", b"DEALER", b"ROUTER"))  # types of socket that may connect to a ROUTER (RFC 28)


class ProtocolError(Exception):
    """A client breaks ZMTP, or exceeds a limit."""


def encode_frame(flags: int, body: bytes) -> bytes:
    """Return a frame: its head (flags, and a size of 1 or 8 bytes: RFC 23), and the body."""
    size = len(body)
    return (bytes((flags, size)) if size < 256 else struct.pack(">BQ", flags | LONG, size)) + body


def parse_head(data: bytes, offset: int) -> tuple[int, int, int] | None:
    """Return flags, size and body offset of the frame at `offset`, None if its head is incomplete."""
    available = len(data) - offset
    if available < 2:
        return None
    flags = data[offset]
    if flags & ~(MORE | LONG | COMMAND):
        raise ProtocolError("an unknown flag")
    if not flags & LONG:
        return flags, data[offset + 1], offset + 2
    return (flags, int.from_bytes(data[offset + 1 : offset + 9], "big"), offset + 9) if available >= 9 else None


def _parse_properties(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the name, in lower case, and the value of each property of READY (RFC 37). Raises ProtocolError."""
    start = 0  # of a property: 1 byte with the name's length, the name, 4 bytes with the value's length, the value
    while start < len(data):
        value_start = start + 1 + data[start] + 4
        end = value_start + int.from_bytes(data[value_start - 4 : value_start], "big")
        if end > len(data):
            raise ProtocolError("a property that is cut off")
        yield data[start + 1 : value_start - 4].lower(), data[value_start:end]
        start = end


READY = encode_frame(COMMAND, _READY + b"\x0bSocket-Type\0\0\0\x06ROUTER" + b"\x08Identity\0\0\0\0")

MOST_PARTS = 63  # most frames of a message
READ_BYTES = 65_536  # size of one read, except for the rest of a large frame
READS = 8  # most reads in one call, because other connections wait for this thread
IN_PLACE_BYTES = 1024  # an incomplete frame of at least this size is read into its own memory


class LargeFrame(Struct):
    """An incomplete frame, of whose body the first `filled` bytes are read."""

    flags: int
    body: memoryview
    filled: int


class ZmtpConnection:
    """One client's connection, which reads and writes without waiting. The caller holds `lock`."""

    def __init__(self, peer: socket.socket, sender: UserIdentity, message_bytes: int) -> None:
        """peer: a non-blocking socket. message_bytes: the most that a message may have."""
        self.lock = threading.Lock()
        self.peer = peer
        self.fd = peer.fileno()
        self.sender = sender
        self.counted_bytes = 0  # part of `held_bytes` that the port has counted
        self.is_drained = True  # the kernel has no further bytes, as far as is known
        self.has_left = False  # the peer has closed its side: read what is left
        self.unsent: deque[memoryview] = deque()
        self.unsent_bytes = 0
        self._message_bytes = message_bytes
        self._has_greeted = False
        self._is_open = False  # the handshake is complete: messages may come
        self._data = b""  # bytes read of the next frame
        self._large: LargeFrame | None = None
        self._parts: list[memoryview] = []  # frames of a message that is not complete

    @property
    def held_bytes(self) -> int:
        """Bytes held for the peer: an incomplete message, and unread replies. Threads read this without the lock."""
        large = self._large
        filled = 0 if large is None else large.filled
        return sum(map(len, self._parts)) + len(self._data) + filled + self.unsent_bytes

    def receive(self) -> list[list[memoryview]]:
        """Read, at most READS times, till messages are complete; return their frames. Raises ProtocolError, OSError."""
        messages: list[list[memoryview]] = []
        with contextlib.suppress(BlockingIOError):
            for _ in range(READS):
                self.is_drained = True  # stays so if the kernel has no bytes: BlockingIOError
                if self._large is None:
                    self._read_frames(messages)
                    is_begun = self._large is not None  # a large frame has begun: libzmq sends it in two parts
                else:
                    self._read_body(self._large, messages)
                    is_begun = False
                if messages or (self.is_drained and not is_begun):
                    break
        return messages

    def _read_frames(self, messages: list[list[memoryview]]) -> None:
        """Read once; process the complete frames, which may complete `messages`, and keep the start of the next."""
        data = self.peer.recv(READ_BYTES)
        if not data:
            raise ConnectionResetError
        self.is_drained = len(data) < READ_BYTES and not self.has_left  # a short read drains the kernel (epoll(7))
        if self._data:
            data = self._data + data
        offset = 0
        if not self._has_greeted:
            offset = self._greet(data)
            if not offset:
                self._data = data
                return
        view = memoryview(data)
        while (head := parse_head(data, offset)) is not None:
            flags, size, begin = head
            is_command = flags & COMMAND or not self._is_open  # before READY, all frames must be commands
            if size > (MAX_COMMAND_BYTES if is_command else self._message_bytes - sum(map(len, self._parts))):
                raise ProtocolError(f"a frame of {size} bytes exceeds the limit")
            end = begin + size
            if end > len(data):
                if size >= IN_PLACE_BYTES:
                    body, beginning = np.empty(size, np.uint8).data, view[begin:]  # allocated as it is filled
                    body[: len(beginning)] = beginning
                    self._large, offset = LargeFrame(flags, body, len(beginning)), len(data)
                break
            self._take_frame(flags, view[begin:end], messages)
            offset = end
        self._data = data[offset:]
        if self._parts:  # parts live longer than the read buffer
            self._parts = [memoryview(bytes(part)) for part in self._parts]

    def _read_body(self, large: LargeFrame, messages: list[list[memoryview]]) -> None:
        """Read once, straight into the memory of the large frame; process it if it is complete."""
        rest = large.body[large.filled :]
        count = self.peer.recv_into(rest)
        if not count:
            raise ConnectionResetError
        self.is_drained = count < len(rest) and not self.has_left
        large.filled += count
        if large.filled == len(large.body):
            self._large = None
            self._take_frame(large.flags, large.body, messages)

    def _greet(self, data: bytes) -> int:
        """Check the greeting (ZMTP 3, mechanism NULL) and reply READY; return its size, 0 if it is incomplete."""
        # Reject a first byte at once: a client of another protocol may wait for our greeting.
        is_whole = len(data) >= GREETING_BYTES
        if data[:1] != SIGNATURE or (is_whole and (data[9] != 0x7F or data[10] < 3)):
            raise ProtocolError("the client sent no greeting of ZMTP 3")
        if not is_whole:
            return 0
        if data[_MECHANISM].rstrip(b"\0") != b"NULL":
            raise ProtocolError("the client wants another security mechanism than NULL")
        self._has_greeted = True
        self.write(READY)
        return GREETING_BYTES

    def _take_frame(self, flags: int, frame: memoryview, messages: list[list[memoryview]]) -> None:
        """Process one frame: finish the handshake, answer a PING, or append a part or a complete message."""
        if not self._is_open:
            if flags & (COMMAND | MORE) != COMMAND:
                raise ProtocolError("a message before READY")
            self._finish_handshake(bytes(frame))
        elif flags & COMMAND:
            if frame[: len(_PING)] == _PING and not self.unsent:  # no PONG for a client that does not read
                context = bytes(frame[len(_PING) + _TTL_BYTES :][:_CONTEXT_BYTES])
                self.write(encode_frame(COMMAND, b"\x04PONG" + context))
        elif not flags & MORE:
            messages.append([*self._parts, frame])
            self._parts = []
        else:
            if len(self._parts) + 1 >= MOST_PARTS:
                raise ProtocolError(f"a message of over {MOST_PARTS} parts")
            self._parts.append(frame)

    def _finish_handshake(self, command: bytes) -> None:
        """Accept messages after the peer's READY; raises ProtocolError unless its type may connect to a ROUTER."""
        if not command.startswith(_READY):
            raise ProtocolError("the client did not send READY")
        if dict(_parse_properties(command[len(_READY) :])).get(b"socket-type") not in _MAY_ASK:
            raise ProtocolError("the client's socket type cannot connect to a ROUTER")
        self._is_open = True

    def send(self, frames: Sequence[bytes]) -> None:
        """Send one message after those that wait; keep what the kernel does not take now. Raises OSError."""
        data = encode_frame(0, frames[-1])
        for frame in reversed(frames[:-1]):
            data = encode_frame(MORE, frame) + data
        self.write(data)

    def write(self, data: bytes) -> None:
        """Write bytes after those that wait; keep what the kernel does not take now. Raises OSError."""
        self.unsent.append(memoryview(data))
        self.unsent_bytes += len(data)
        if len(self.unsent) == 1:
            self.flush()

    def flush(self) -> None:
        """Write as much of the waiting bytes as the kernel takes. Raises OSError if the peer is gone."""
        with contextlib.suppress(BlockingIOError):
            while self.unsent:
                count = self.peer.send(self.unsent[0])
                self.unsent_bytes -= count
                if count == len(self.unsent[0]):
                    self.unsent.popleft()
                else:
                    self.unsent[0] = self.unsent[0][count:]
