"""One peer's connection: what it has sent so far, as messages, and what it has not read yet."""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Sequence

import numpy as np

from jetsel.daemon.identity import Identity
from jetsel.daemon.zmtp.mechanism import Mechanism
from jetsel.daemon.zmtp.wire import (
    COMMAND,
    FIRST,
    GREETING_BYTES,
    LONG,
    LONGEST_HEAD,
    MAX_COMMAND_BYTES,
    MORE,
    SHORTEST_HEAD,
    ProtocolError,
    pong,
)

NEWS = select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET  # which the kernel is to tell of
MOST_PARTS = 63  # of a message
MOST_COMMANDS = 200  # of the protocol's own, from one sweep of the server to the next: a heartbeat is one
FRAMES_AT_ONCE = 64  # as many as a message may have, so that commands alone are left for later
FRAME_COST_BYTES = 10_000  # what is moved in the time that it takes to look at a sealed frame of none
FROM_HERE_BYTES = 1024  # a frame of so many, of which some are missing, is read into memory of its own


class Connection:
    """Reads and writes without waiting. For whoever holds the server's lock."""

    def __init__(
        self, peer: socket.socket, token: int, mechanism: Mechanism, place: str, frame_bytes: int, now_s: float
    ) -> None:
        """frame_bytes: the most that a frame may have; a message may have twice as many. token: names its routes.

        place: whose place it has; see Places.
        """
        self.peer = peer
        self.fd = peer.fileno()
        self.token = token
        self.place = place
        self.begun_s: float | None = now_s  # since when it owes the rest of its handshake, or of a message
        self.to_send: list[bytes] = [mechanism.greeting]  # of the protocol's own
        self.commands = 0  # since the server's last sweep
        self.looked_at_bytes = 0  # at the last `take`
        self.has_unread = False  # since then
        self.held_bytes = 0  # of a message that is not whole
        self.counted_bytes = 0  # of them, by the server
        self._mechanism = mechanism
        self._frame_bytes = frame_bytes
        self._is_drained = False  # nothing is to be read until the kernel tells of more
        self._has_left = False  # so it has told: what there is to be read has an end
        self._has_greeted = False
        self._data = b""  # read and not looked at, from `_at` on
        self._view = memoryview(self._data)
        self._at = 0
        self._body: memoryview | None = None  # of a frame that is not whole
        self._filled = 0
        self._flags = 0
        self._parts: list[memoryview] = []
        self._parts_bytes = 0
        self._kept_parts = 0  # of these parts, how many are in memory of their own

    @property
    def is_open(self) -> bool:
        """Whether the handshake is through."""
        return self._mechanism.is_open

    @property
    def identity(self) -> Identity:
        """Who the peer is, as is known now."""
        return self._mechanism.identity

    @property
    def to_come_bytes(self) -> int:
        """What is missing of a frame whose size is known."""
        return 0 if self._body is None else len(self._body) - self._filled

    @property
    def frame_bytes(self) -> int:
        """The size of that frame."""
        return 0 if self._body is None else len(self._body)

    @property
    def may_have_unread(self) -> bool:
        """Whether the kernel may hold something that it sent."""
        return not self._is_drained or self._has_left

    def may_have_more(self, *, has_left: bool) -> None:
        """Take note of news from the kernel."""
        self._is_drained = False
        self._has_left |= has_left

    def fill(self, scratch: memoryview) -> int | None:
        """Read once; return how many bytes that was, 0 at the end, None where there is nothing now. Raises OSError.

        Who is told of news once (EPOLLET) reads on until there is none, of which less than was asked for is a sign
        (epoll(7), questions and answers). From then on nothing is read until `may_have_more`. A peer that passes
        descriptors along, each of which cuts a read short (unix(7), SCM_RIGHTS), is read at its next word.
        """
        if not self.may_have_unread:
            return None
        body = self._body
        try:
            if body is not None and self._filled < len(body):
                rest = body[self._filled :]
                count = self.peer.recv_into(rest)
                self._is_drained = count < len(rest)
                self._filled += count
                self.held_bytes += count
                return count
            count = self.peer.recv_into(scratch)
        except BlockingIOError:
            self._is_drained = True
            return None
        self._is_drained = count < len(scratch)
        self._data = b"".join((self._view[self._at :], scratch[:count]))
        self._view, self._at = memoryview(self._data), 0
        return count

    @property
    def is_between(self) -> bool:
        """Whether nothing of a message, or of the handshake, is here without the rest."""
        return self.is_open and self._body is None and not self._parts and self._at == len(self._data)

    def _keep(self) -> None:
        """Hold no more of what was read than what is still to be looked at: one byte of a part may be all of it."""
        for at in range(self._kept_parts, len(self._parts)):
            self._parts[at] = memoryview(bytes(self._parts[at]))
        self._kept_parts = len(self._parts)
        if self._body is None:
            self._data = self._data[self._at :]
            self._view, self._at = memoryview(self._data), 0
            self.held_bytes = self._parts_bytes + len(self._data)

    def take(self) -> list[memoryview] | None:
        """Return the next message that is whole; None where more is to be read first. Raises ProtocolError.

        None too where it `has_unread` frames still, since others are to have their turn.
        """
        self.looked_at_bytes, self.has_unread = 0, False
        for _ in range(FRAMES_AT_ONCE):
            frame = self._frame()
            if frame is None:
                break
            flags = self._flags
            self.looked_at_bytes += FRAME_COST_BYTES + len(frame)
            if not self._mechanism.is_open:
                if flags & (COMMAND | MORE) != COMMAND:
                    raise ProtocolError("a message before READY")
                self._answer(self._mechanism.heard(bytes(frame)))
                continue
            flags, frame = self._mechanism.opened(flags, frame)
            if flags & COMMAND:
                self.commands += 1
                if self.commands > MOST_COMMANDS:
                    raise ProtocolError(f"over {MOST_COMMANDS} commands in a second")
                answer = pong(bytes(frame))
                if answer is not None:
                    self._answer(self._mechanism.sealed(COMMAND, answer))
            else:
                self._parts.append(frame)
                self._parts_bytes += len(frame)
                if not flags & MORE:
                    found, self._parts = self._parts, []
                    self._parts_bytes = self._kept_parts = self.held_bytes = 0
                    return found
                if len(self._parts) >= MOST_PARTS:
                    raise ProtocolError(f"a message of over {MOST_PARTS} parts")
        else:
            self.has_unread = True
        self._keep()
        return None

    def _frame(self) -> memoryview | None:
        """Return the next whole frame, whose flags are then known."""
        if self._body is not None:
            if self._filled < len(self._body):
                return None
            frame, self._body = self._body, None
            return frame
        if not self._has_greeted and not self._greet():
            return None
        data, at = self._data, self._at
        left = len(data) - at
        if left < SHORTEST_HEAD:
            return None
        flags, size, at = data[at], data[at + 1], at + SHORTEST_HEAD
        if flags & LONG:
            if left < LONGEST_HEAD:
                return None
            size = int.from_bytes(data[at - 1 : at + 7], "big")
            at += LONGEST_HEAD - SHORTEST_HEAD
        self._check(flags, size)
        end = at + size
        if end > len(data):
            if size >= FROM_HERE_BYTES:
                self._begin(flags, size, at)
            return None
        self._flags, self._at = flags, end
        return self._view[at:end]

    def _greet(self) -> bool:
        """Look at the greeting once it is whole; return whether it was."""
        end = self._at + GREETING_BYTES
        if self._data[self._at : self._at + 1] not in (b"", FIRST):  # who speaks something else may wait for us
            raise ProtocolError("no greeting of ZMTP 3")
        if end > len(self._data):
            return False
        self._answer(self._mechanism.greeted(self._data[self._at : end]))
        self._at = end
        self._has_greeted = True
        return True

    def _answer(self, frame: bytes) -> None:
        if frame:
            self.to_send.append(frame)

    def _check(self, flags: int, size: int) -> None:
        if flags & ~(MORE | LONG | COMMAND):
            raise ProtocolError("a flag that there is not")
        overhead = self._mechanism.overhead_bytes
        is_long = self._mechanism.is_open and (overhead or not flags & COMMAND)  # a sealed frame may be called one
        most = self._frame_bytes + overhead if is_long else MAX_COMMAND_BYTES
        if size > most or self._parts_bytes + size > 2 * (self._frame_bytes + overhead):
            raise ProtocolError(f"a frame of {size} bytes")

    def _begin(self, flags: int, size: int, at: int) -> None:
        """Have the rest of a large frame read into memory of its own, which the kernel gives as it is filled."""
        rest = self._view[at:]
        body = np.empty(size, np.uint8).data
        body[: len(rest)] = rest
        self._flags, self._body, self._filled = flags, body, len(rest)
        self.held_bytes = self._parts_bytes + len(rest)
        self._data, self._at = b"", 0
        self._view = memoryview(self._data)

    def sealed(self, frames: Sequence[bytes]) -> bytes:
        """Return a message as it is sent, which is to be sent before the next one is sealed, or never."""
        last = len(frames) - 1
        seal = self._mechanism.sealed
        return b"".join(seal(MORE if at < last else 0, frame) for at, frame in enumerate(frames))

    def send(self, data: bytes | memoryview) -> memoryview:
        """Write what goes now; return the rest. Raises OSError where the peer is gone."""
        rest = memoryview(data)
        with contextlib.suppress(BlockingIOError):
            while rest:
                rest = rest[self.peer.send(rest) :]
        return rest
