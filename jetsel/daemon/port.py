"""The socket that requests come over, which every thread of the daemon may use: a ROUTER of our own.

libzmq is not used here since its ROUTER ends the process where a peer hangs up behind messages that nobody has taken
yet (docs/security.md). Threads that have nothing to do sleep here, and each event rouses one of them: all wait at one
epoll instance, where every descriptor tells of news once (EPOLLET, epoll(7)).
"""

from __future__ import annotations

import itertools
import logging
import select
import socket
import threading
from collections.abc import Callable

from jetsel.bell import Bell
from jetsel.config import Server
from jetsel.daemon import descriptors
from jetsel.daemon.identity import sender_of
from jetsel.daemon.listener import Listener
from jetsel.daemon.message import Message, Route, unwrapped
from jetsel.daemon.zmtp.connection import Connection
from jetsel.daemon.zmtp.frames import GREETING, ProtocolError
from jetsel.events import event

log = logging.getLogger("jetsel.daemon")

HEARTBEAT_MS = 1000  # no thread sleeps longer, whatever happens
MESSAGE_ROOM_BYTES = 131_072  # a message may be so much larger than an image may be: its JSON and its envelope
UNREAD_BYTES = 32_000_000  # of replies are kept for one peer that does not read
TURNS = 64  # of peers, in one call: others wait for the lock meanwhile
ENTRIES = 64  # connections that one call accepts
SCRATCH_BYTES = 65_536
_NEWS = select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET
_LEFT = select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR


class Port:
    """Receives requests from all connections, in turns, and sends replies."""

    def __init__(self, listener: Listener, max_image_bytes: int, limits: Server) -> None:
        """Serve at a listening socket, which is this object's to close from now on."""
        self.endpoints = [f"ipc://{listener.path}"]
        self.heartbeat_ms: float = HEARTBEAT_MS
        self.lost_replies = 0  # that found no reader
        self._image_bytes = max_image_bytes
        self._most_held_bytes = int(limits.peers_mb * 1e6)
        self._most_clients = max(1, min(limits.max_clients, descriptors.limit() - descriptors.RESERVE))
        self._lock = threading.Lock()
        self._bell = Bell()
        self._epoll = select.epoll()
        self._listening = socket.socket(fileno=listener.fd)
        self._listening.setblocking(False)
        self._epoll.register(self._bell.fd, select.EPOLLIN | select.EPOLLET)
        self._epoll.register(self._listening, _NEWS)
        self._tokens = itertools.count(1)
        self._by_fd: dict[int, Connection] = {}
        self._by_token: dict[int, Connection] = {}
        self._ready: dict[int, Connection] = {}  # those that may have something, in their order
        self._slow: dict[int, Connection] = {}  # those that have not read all replies
        self._held_bytes = 0  # for all together
        self._scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._somebody_waits = True  # to be accepted, as far as is known
        self._is_full = False  # and the log was told so
        self._is_shut = self._closed = False
        self._has_called = False
        self._has_just_heard = False  # a thread that has slept need not look again for what it woke to

    def sleep(self) -> None:
        """Sleep until a message may have come, `wake` was called, or `heartbeat_ms` is over."""
        self._hear(self.heartbeat_ms / 1e3, is_awake=False)
        self._has_just_heard = True

    def _hear(self, timeout_s: float, *, is_awake: bool) -> None:
        """Take note of what the epoll instance tells; the next `receive` looks."""
        told = self._epoll.poll(timeout_s)
        if not told and timeout_s:
            self._somebody_waits = True  # perhaps descriptors have become free
        for descriptor, events in told:
            if descriptor == self._bell.fd:
                self._bell.heard()
                if is_awake:
                    self._bell.ring()  # it was for one that sleeps
                else:
                    self._has_called = False
                continue
            with self._lock:
                connection = self._by_fd.get(descriptor)
                if connection is None:
                    self._somebody_waits = True
                    continue
                connection.may_have_more(has_left=bool(events & _LEFT))
                self._ready[descriptor] = connection
                if events & select.EPOLLOUT:
                    self._write(connection, connection.flush)

    def wake(self) -> None:
        """Rouse one thread that sleeps, or the next that would."""
        self._bell.ring()

    def _call(self) -> None:
        """Rouse one thread that sleeps, unless that is under way: rings that nobody hears add up."""
        if not self._has_called:
            self._has_called = True
            self._bell.ring()

    def receive(self, most: int) -> list[Message]:
        """Return messages that have come, of each peer in its turn, without waiting.

        No peer is read once there are `most`, or as many bytes as one image may have: the last may bring some more.
        """
        found: list[Message] = []
        if self._closed:
            return found
        if not self._has_just_heard:  # before the connections are read: each event is told once
            self._hear(0.0, is_awake=True)
        self._has_just_heard = False
        size = 0
        with self._lock:
            self._accept()
            for _ in range(TURNS):
                if not self._ready or len(found) >= most or size >= self._image_bytes:
                    break
                connection = self._ready.pop(next(iter(self._ready)))
                for frames in self._read(connection):
                    size += sum(map(len, frames))
                    envelope, content = unwrapped(frames)
                    found.append(Message(Route(connection.token, envelope), content, connection.sender))
        if self._ready or self._somebody_waits:
            self._call()  # this thread may go and compute: another reads on
        return found

    def _read(self, connection: Connection) -> list[list[memoryview]]:
        """Give one peer its turn; it is hung up on where it is gone, or breaks the protocol."""
        try:
            found = connection.turn(self._scratch)
        except (OSError, ProtocolError, MemoryError) as error:
            told = event("client-hung-up-on", client=connection.sender.name)
            log.debug("%s was hung up on: %s", connection.sender.name, error, extra=told)
            self._drop(connection)
            return []
        if connection.has_more:
            self._ready[connection.fd] = connection  # behind the others
        self._count(connection)
        return found

    def _accept(self) -> None:
        """Accept those who wait, as far as there is room; others are looked at again when one leaves, or later."""
        for _ in range(ENTRIES):
            if not self._somebody_waits or self._is_shut:
                break
            if len(self._by_fd) >= self._most_clients:
                self._somebody_waits = False
                if select.select([self._listening], [], [], 0)[0]:
                    self._tell_full()
                break
            try:
                peer = self._listening.accept()[0]
            except BlockingIOError:
                self._somebody_waits = self._is_full = False
            except OSError:  # no descriptor, or no memory, is free
                self._somebody_waits = False
                self._tell_full()
            else:
                self._greet(peer)

    def _greet(self, peer: socket.socket) -> None:
        """Take up a connection, unless it has gone meanwhile."""
        try:
            peer.setblocking(False)
            room_bytes = self._image_bytes + MESSAGE_ROOM_BYTES
            connection = Connection(peer, next(self._tokens), sender_of(peer), room_bytes)
            connection.write(GREETING)
            self._epoll.register(connection.fd, _NEWS)
        except OSError:
            peer.close()
            return
        self._by_fd[connection.fd] = self._by_token[connection.token] = self._ready[connection.fd] = connection

    def _tell_full(self) -> None:
        if not self._is_full:
            self._is_full = True
            log.warning(
                "%d clients are connected and more wait for a place: raise server.max_clients or the limit of open "
                "files (%d)",
                len(self._by_fd),
                descriptors.limit(),
                extra=event("clients-wait", clients=len(self._by_fd)),
            )

    def send(self, route: Route, frame: bytes) -> None:
        """Send one reply without waiting for the peer; what its kernel does not take now is kept for it.

        A reply to a peer that is gone is counted as lost, and so is what is kept for one that is hung up on.
        """
        with self._lock:
            connection = self._by_token.get(route.peer)
            if connection is None:
                self._lose(1)
            else:
                self._write(connection, lambda: connection.send((*route.envelope, frame)))

    def _write(self, connection: Connection, write: Callable[[], None]) -> None:
        """Have a connection write, and be told when it can write on; hang up where it cannot."""
        try:
            write()
            if connection.unsent and connection.fd not in self._slow:
                self._slow[connection.fd] = connection
                self._epoll.modify(connection.fd, _NEWS | select.EPOLLOUT)
            elif not connection.unsent and self._slow.pop(connection.fd, None) is not None:
                self._epoll.modify(connection.fd, _NEWS)
        except (OSError, MemoryError):
            self._drop(connection)
            return
        if connection.unsent_bytes > UNREAD_BYTES:
            self._shed(connection, "does not read its replies")
        self._count(connection)

    def _count(self, connection: Connection) -> None:
        """Take up what a connection holds now; hang up on whoever holds most where that is too much in all."""
        if connection.fd in self._by_fd:
            self._held_bytes += connection.held_bytes - connection.counted_bytes
            connection.counted_bytes = connection.held_bytes
        while self._held_bytes > self._most_held_bytes:
            greediest = max(self._by_fd.values(), key=lambda each: each.counted_bytes)
            self._shed(greediest, "holds most of server.peers_mb, which is used up")

    def _shed(self, connection: Connection, why: str) -> None:
        held_mb, client = connection.held_bytes / 1e6, connection.sender.name
        told = event("peer-shed", client=client, held_mb=held_mb)
        log.warning("%s is hung up on, with %.1f MB held for it: it %s", client, held_mb, why, extra=told)
        self._drop(connection)

    def _drop(self, connection: Connection) -> None:
        """Hang up; replies that it has not read are lost."""
        if self._by_fd.get(connection.fd) is not connection:
            return
        del self._by_fd[connection.fd], self._by_token[connection.token]
        self._ready.pop(connection.fd, None)
        self._slow.pop(connection.fd, None)
        self._held_bytes -= connection.counted_bytes
        self._lose(len(connection.unsent))
        connection.peer.close()
        self._somebody_waits = True  # perhaps for this place

    def _lose(self, count: int) -> None:
        self.lost_replies += count
        if count:
            told = event("replies-lost", count=count)
            log.warning("replies are lost: who asked is gone, or does not read", extra=told)

    @property
    def is_quiet(self) -> bool:
        """Whether no message waits to be taken and no reply waits for its reader."""
        self._hear(0.0, is_awake=True)
        if self._ready:
            self._call()  # whoever would have heard of it
        return not self._ready and not self._slow

    def shut(self) -> None:
        """Accept nobody any more: who connects waits for whoever listens there next."""
        self._is_shut = True

    def close(self) -> None:
        """Hang up on everybody; replies that wait for their readers are lost."""
        self._closed = True
        with self._lock:
            for connection in list(self._by_fd.values()):
                self._drop(connection)
        self._listening.close()
        self._epoll.close()
        self._bell.close()
