"""The ROUTER socket that every thread of the daemon may use, one at a time."""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

import zmq

from jetsel.daemon.listener import Listener

HIGH_WATER_MARK = 8  # messages for each peer and direction: libzmq holds them before we see anything
MOST_DELAYED = 1024  # replies that wait for their peer to read on, of all peers together
PATIENCE_S = 2.0  # how long such a reply waits before it is lost
RETRY_MS = 5
LARGEST_IMAGES_PER_MESSAGE = 2  # the socket's message limit, in units of the image limit; a larger message disconnects


@dataclass(frozen=True, slots=True)
class Route:
    """Where a reply goes: the peer's identity, and whether its request began with REQ's empty delimiter."""

    peer: bytes
    delimited: bool


@dataclass(frozen=True, slots=True)
class Message:
    """One message as it came. credentials: (uid, gid, pid) of an ipc peer, None over tcp."""

    route: Route
    frames: list[memoryview]
    credentials: tuple[int, int, int] | None


class Port:
    """A ROUTER behind a lock, with an edge-triggered descriptor to wait on and another to wake the waiter.

    ZeroMQ sockets may move between threads behind a full memory barrier, which the lock is. Sending can swallow the
    descriptor's edge for a message that came meanwhile, so `send` looks and wakes the waiter.
    """

    def __init__(self, listener: Listener | None, tcp: str | None, max_image_bytes: int) -> None:
        self._context = zmq.Context(io_threads=1)
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
        self._socket.setsockopt(zmq.RCVHWM, HIGH_WATER_MARK)
        self._socket.setsockopt(zmq.SNDHWM, HIGH_WATER_MARK)
        self._socket.setsockopt(zmq.MAXMSGSIZE, LARGEST_IMAGES_PER_MESSAGE * max_image_bytes)
        self._socket.setsockopt(zmq.LINGER, 500)
        self.endpoints: list[str] = []
        if listener is not None:
            self._socket.setsockopt(zmq.USE_FD, listener.fd)
            self._socket.bind(f"ipc://{listener.path}")
            self._socket.setsockopt(zmq.USE_FD, -1)
            self.endpoints.append(f"ipc://{listener.path}")
        if tcp is not None:
            self._socket.bind(tcp)
            self.endpoints.append(str(self._socket.get_string(zmq.LAST_ENDPOINT)))
        self._lock = threading.Lock()
        self._closed = False
        self._wake = _Wake()
        self._poll = select.poll()
        self._poll.register(int(self._socket.getsockopt(zmq.FD)), select.POLLIN)
        self._poll.register(self._wake.fd, select.POLLIN)
        self._delayed: deque[tuple[float, list[bytes]]] = deque()
        self.lost_replies = 0

    def wait(self, timeout_ms: int) -> None:
        """Retry late replies, then sleep until a message may have come, somebody wakes us, or the time is over."""
        if self._delayed:
            self._retry()
            timeout_ms = RETRY_MS if self._delayed else timeout_ms
        for descriptor, _ in self._poll.poll(timeout_ms):
            if descriptor == self._wake.fd:
                self._wake.clear()

    def wake(self) -> None:
        """End the wait of whoever waits, or of the next who would."""
        self._wake.set()

    def receive(self, limit: int) -> list[Message]:
        """Return up to `limit` messages that have come, without waiting; where more are left, the next wait is none."""
        messages: list[Message] = []
        with self._lock:
            while not self._closed:
                if len(messages) == limit:
                    self._wake.set()
                    break
                try:
                    parts: list[Any] = self._socket.recv_multipart(zmq.NOBLOCK, copy=False)
                except zmq.Again:
                    break
                messages.append(_message(parts))
        return messages

    def send(self, route: Route, frame: bytes) -> None:
        """Send one reply without waiting for the peer.

        A peer at its high-water mark may only be slow to be scheduled: its reply is tried again for a while. What
        a peer that is gone, or does not read, loses is counted.
        """
        frames = [route.peer, b"", frame] if route.delimited else [route.peer, frame]
        with self._lock:
            if self._closed:
                return
            if not self._try(frames):
                if len(self._delayed) < MOST_DELAYED:
                    self._delayed.append((time.monotonic() + PATIENCE_S, frames))
                    self._wake.set()
                else:
                    self.lost_replies += 1
            if self._readable():
                self._wake.set()

    def _readable(self) -> bool:
        return bool(int(self._socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN)

    def _try(self, frames: list[bytes]) -> bool:
        """Send without waiting; return False where the peer is at its high-water mark."""
        try:
            self._socket.send_multipart(frames, zmq.NOBLOCK)
        except zmq.Again:
            return False
        except zmq.ZMQError:  # EHOSTUNREACH: it is gone
            self.lost_replies += 1
        return True

    def _retry(self) -> None:
        """Try each late reply once more, and give up on those that have waited long enough."""
        with self._lock:
            now = time.monotonic()
            late, self._delayed = self._delayed, deque()
            for give_up_s, frames in late:
                if self._closed or self._try(frames):
                    continue
                if now < give_up_s:
                    self._delayed.append((give_up_s, frames))
                else:
                    self.lost_replies += 1
            if not self._closed and self._readable():
                self._wake.set()

    def close(self) -> None:
        """Close the socket; what was sent is given half a second to leave."""
        with self._lock:
            self._closed = True
            self._socket.close()
        self._context.term()
        self._wake.close()


class _Wake:
    """A descriptor that is readable while somebody is to be woken."""

    def __init__(self) -> None:
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def set(self) -> None:
        os.eventfd_write(self.fd, 1)

    def clear(self) -> None:
        with contextlib.suppress(BlockingIOError):  # another thread cleared it first
            os.eventfd_read(self.fd)

    def close(self) -> None:
        os.close(self.fd)


def _message(parts: list[Any]) -> Message:
    frames = [part.buffer for part in parts[1:]]
    delimited = bool(frames) and len(frames[0]) == 0 and len(frames) > 1
    return Message(Route(parts[0].bytes, delimited), frames[1:] if delimited else frames, _credentials(parts[-1]))


def _credentials(part: Any) -> tuple[int, int, int] | None:
    """Read uid, gid and pid from Peer-Address, which for ipc peers is what the kernel says of them (SO_PEERCRED)."""
    try:
        address = part.get("Peer-Address")
    except zmq.ZMQError:
        return None
    return parse_peer_address(address)


def parse_peer_address(address: str) -> tuple[int, int, int] | None:
    """':uid:gid:pid' as libzmq writes it for ipc -> (uid, gid, pid); anything else, a tcp address included -> None."""
    fields = address.split(":")
    if len(fields) != 4 or fields[0] not in ("", "localhost") or not all(f.isdigit() for f in fields[1:]):
        return None
    uid, gid, pid = (int(field) for field in fields[1:])
    return uid, gid, pid
