"""One peer's connection: what it has sent so far, as messages, and the replies that it has not read yet."""

from __future__ import annotations

import contextlib
import socket
from collections import deque
from collections.abc import Sequence

import numpy as np

from jetsel.daemon.identity import Identity
from jetsel.daemon.zmtp.frames import (
    COMMAND,
    GREETING_BYTES,
    MAX_COMMAND_BYTES,
    MORE,
    READY,
    SIGNATURE,
    ProtocolError,
    check_greeting,
    check_ready,
    framed,
    head_of,
    pong,
)

MOST_PARTS = 63  # of a message
STEPS_PER_TURN = 16  # reads and frames: others wait for the server's lock meanwhile
IN_PLACE_BYTES = 1024  # a frame of so many that is not whole yet is read straight into memory of its own


class Connection:
    """Reads and writes without waiting. For whoever holds the server's lock."""

    def __init__(self, peer: socket.socket, token: int, sender: Identity, message_bytes: int) -> None:
        """token: names the routes of its replies. message_bytes: the most that a message may have."""
        self.peer = peer
        self.fd = peer.fileno()
        self.token = token
        self.sender = sender
        self.counted_bytes = 0  # of `held_bytes`, by the server
        self.has_more = True  # another turn may find something
        self.unsent: deque[memoryview] = deque()  # replies that the peer has not read
        self.unsent_bytes = 0
        self._message_bytes = message_bytes
        self._has_greeted = False
        self._is_open = False  # the handshake is through
        self._is_drained = False  # the kernel has nothing more, as far as is known
        self._has_left = False  # so it is read to its end
        self._data = b""  # read and not looked at, from `_at` on
        self._at = 0
        self._body: memoryview | None = None  # of a large frame that is not whole
        self._filled = 0
        self._flags = 0  # of that frame
        self._parts: list[memoryview] = []
        self._parts_bytes = 0

    @property
    def held_bytes(self) -> int:
        """What is held for the peer: of a message that is not whole, and of replies that it has not read."""
        here = len(self._data) - self._at if self._body is None else self._filled
        return self._parts_bytes + here + self.unsent_bytes

    def may_have_more(self, *, has_left: bool) -> None:
        """Take note of news from the kernel."""
        self._is_drained = False
        self._has_left |= has_left

    def turn(self, scratch: memoryview) -> list[list[memoryview]]:
        """Read on until a message is whole, so often at most, and return those that are whole by then.

        Raises ProtocolError, OSError where the peer is gone, and MemoryError.
        """
        found: list[list[memoryview]] = []
        for _ in range(STEPS_PER_TURN):
            frame = self._frame()
            if frame is not None:
                message = self._hear(*frame)
                if message is not None:
                    found.append(message)
            elif found or self._is_drained:
                self.has_more = not self._is_drained
                self._data, self._at = self._data[self._at :], 0  # the rest is not held for a few bytes of it
                return found
            else:
                self._is_drained = self._read(scratch)
        self.has_more = True
        return found

    def _read(self, scratch: memoryview) -> bool:
        """Read once; return whether the kernel has nothing more, of which a short read is a sign (epoll(7))."""
        try:
            if self._body is not None:
                rest = self._body[self._filled :]
                count, asked = self.peer.recv_into(rest), len(rest)
                self._filled += count
            else:
                count, asked = self.peer.recv_into(scratch), len(scratch)
                self._data = b"".join((self._data[self._at :], scratch[:count]))
                self._at = 0
        except BlockingIOError:
            return True
        if count == 0:
            raise ConnectionResetError
        return count < asked and not self._has_left

    def _frame(self) -> tuple[int, memoryview] | None:
        """Return the flags and the body of the next frame that is whole; None where more is to be read first."""
        if self._body is not None:
            if self._filled < len(self._body):
                return None
            body, self._body = self._body, None
            return self._flags, body
        if not self._has_greeted and not self._greet():
            return None
        head = head_of(self._data, self._at)
        if head is None:
            return None
        flags, size, at = head
        most = MAX_COMMAND_BYTES if flags & COMMAND or not self._is_open else self._message_bytes - self._parts_bytes
        if size > most:
            raise ProtocolError(f"a frame of {size} bytes")
        view = memoryview(self._data)[at:]
        if size <= len(view):
            self._at = at + size
            return flags, view[:size]
        if size >= IN_PLACE_BYTES:
            self._body = np.empty(size, np.uint8).data  # the kernel gives this memory as it is filled
            self._body[: len(view)] = view
            self._flags, self._filled = flags, len(view)
            self._data, self._at = b"", 0
        return None

    def _greet(self) -> bool:
        """Look at the peer's greeting; return whether it was whole."""
        greeting = self._data[:GREETING_BYTES]
        if not SIGNATURE.startswith(greeting[:1]):  # who speaks another protocol may wait for our words
            raise ProtocolError("no greeting of ZMTP 3")
        if len(greeting) < GREETING_BYTES:
            return False
        check_greeting(greeting)
        self._has_greeted, self._at = True, GREETING_BYTES
        self.write(READY)
        return True

    def _hear(self, flags: int, frame: memoryview) -> list[memoryview] | None:
        """Take one frame; return the message that it ends."""
        if not self._is_open:
            if flags & (COMMAND | MORE) != COMMAND:
                raise ProtocolError("a message before READY")
            check_ready(bytes(frame))
            self._is_open = True
        elif flags & COMMAND:
            answer = pong(bytes(frame))
            if answer is not None and not self.unsent:  # who does not read is sent no PONG either
                self.write(answer)
        elif not flags & MORE:
            message, self._parts, self._parts_bytes = [*self._parts, frame], [], 0
            return message
        else:
            if len(self._parts) + 1 >= MOST_PARTS:
                raise ProtocolError(f"a message of over {MOST_PARTS} parts")
            is_alone = self._at == 0  # else it holds all that was read with it
            self._parts.append(frame if is_alone else memoryview(bytes(frame)))
            self._parts_bytes += len(frame)
        return None

    def send(self, frames: Sequence[bytes]) -> None:
        """Send one message behind what waits; what the kernel does not take now is kept. Raises OSError."""
        last = len(frames) - 1
        self.write(b"".join(framed(MORE if at < last else 0, frame) for at, frame in enumerate(frames)))

    def write(self, data: bytes) -> None:
        """Write bytes, as `send` does."""
        self.unsent.append(memoryview(data))
        self.unsent_bytes += len(data)
        if len(self.unsent) == 1:
            self.flush()

    def flush(self) -> None:
        """Write what the kernel takes of all that waits. Raises OSError where the peer is gone."""
        with contextlib.suppress(BlockingIOError):
            while self.unsent:
                count = self.peer.send(self.unsent[0])
                self.unsent_bytes -= count
                if count == len(self.unsent[0]):
                    self.unsent.popleft()
                else:
                    self.unsent[0] = self.unsent[0][count:]
