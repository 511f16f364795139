"""The socket that requests come over, which every thread of the daemon may use: a ROUTER of our own.

libzmq is not used here since its ROUTER ends the process if a peer hangs up behind messages that nobody has taken
yet (docs/security.md). Threads that have nothing to do wait at one epoll instance, where each piece of news rouses one
of them (EPOLLET, epoll(7)): that thread reads what has come, and mostly carries it to its reply.
"""

from __future__ import annotations

import logging
import select
import socket
import threading
from typing import NamedTuple

from jetsel.base.config import ServerSettings
from jetsel.base.events import event
from jetsel.base.process import RESERVED_FILES, EventFd, file_limit
from jetsel.daemon.identity import UserIdentity, sender_of
from jetsel.daemon.listener import Listener
from jetsel.daemon.zmtp import GREETING, ProtocolError, ZmtpConnection

log = logging.getLogger("jetsel.daemon")

MESSAGE_ROOM_BYTES = 131_072  # a message may be so much larger than an image may be: its JSON and its envelope
COUNTED_BYTES = 65_536  # that a connection holds, more or less than was counted, before it is counted anew
UNREAD_BYTES = 32_000_000  # of replies are kept for one peer that does not read
_NEWS = select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET
_LEFT = select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR


class Port:
    """Receives requests from all connections, and sends replies."""

    def __init__(self, listener: Listener, max_image_bytes: int, limits: ServerSettings) -> None:
        """Serve at a listening socket, which is this object's to close from now on."""
        self.endpoints = [f"ipc://{listener.path}"]
        self.lost_replies = 0  # that found no reader
        self.max_image_mb = max_image_bytes / 1e6  # until the daemon is started anew, whatever a reload reads
        self._message_bytes = max_image_bytes + MESSAGE_ROOM_BYTES
        self._most_held_bytes = int(limits.peers_mb * 1e6)
        self._most_clients = max(1, min(limits.max_clients, file_limit() - RESERVED_FILES))
        self._lock = threading.Lock()  # of what follows; taken by who may hold a connection's lock, never before it
        self._connections: dict[int, ZmtpConnection] = {}  # by descriptor
        self._held_bytes = 0  # for all together
        self._is_full = False  # so that it is logged once, and others are accepted when one leaves
        self._is_shut = False
        self._event_fd = EventFd()
        self._listening = socket.socket(fileno=listener.fd)
        self._listening.setblocking(False)
        self._epoll = select.epoll()
        self._epoll.register(self._event_fd.fd, select.EPOLLIN | select.EPOLLET)
        self._epoll.register(self._listening, _NEWS)

    def wake(self) -> None:
        """Rouse one thread that waits in `receive`, or the next that would."""
        self._event_fd.set()

    def receive(self, timeout_s: float, most: int = 1) -> list[Message] | None:
        """Wait for at most this number of events, and return the messages that they bring: mostly one each.

        None of them if `wake` was called or a peer came; None if the time is over.
        """
        messages: list[Message] = []
        news = self._epoll.poll(timeout_s, most)  # another thread hears what else there is
        for descriptor, events in news:
            connection = self._connections.get(descriptor)
            if connection is not None:
                messages += self._read(connection, events)
            elif descriptor == self._event_fd.fd:
                self._event_fd.clear()
            else:
                self._accept()
        if news:
            return messages
        if timeout_s:
            self._accept()  # perhaps a descriptor, or a place, has become free
        return None

    def _read(self, connection: ZmtpConnection, events: int) -> list[Message]:
        """Read from one peer; drop it if it is gone or breaks the protocol."""
        with connection.lock:
            try:
                connection.has_left |= bool(events & _LEFT)
                if events & select.EPOLLOUT:
                    connection.flush()
                received = connection.receive()
                if connection.unsent or events & select.EPOLLOUT or not connection.is_drained:
                    self._listen_on(connection)
            except (OSError, ProtocolError, MemoryError) as error:
                fields = event("client-hung-up-on", client=connection.sender.name)
                log.debug("%s was dropped: %s", connection.sender.name, error, extra=fields)
                self._drop(connection)
                return []
        if abs(connection.held_bytes - connection.counted_bytes) >= COUNTED_BYTES:
            self._count(connection)
        messages = []
        for frames in received:
            envelope, content = unwrapped(frames)
            messages.append(Message(Route(connection, envelope), content, connection.sender))
        return messages

    def _listen_on(self, connection: ZmtpConnection) -> None:
        """Have news of a connection told again, though they are no others: what is left is any thread's to read."""
        self._epoll.modify(connection.fd, _NEWS | (select.EPOLLOUT if connection.unsent else 0))

    def _accept(self) -> None:
        """Accept those who wait, as far as there is room; the others when one leaves, or a little later."""
        with self._lock:
            while not self._is_shut:
                if len(self._connections) >= self._most_clients:
                    if select.select([self._listening], [], [], 0)[0]:
                        self._tell_full()
                    return
                try:
                    peer = self._listening.accept()[0]
                except BlockingIOError:
                    self._is_full = False
                    return
                except OSError:  # no descriptor, or no memory, is free
                    self._tell_full()
                    return
                self._greet(peer)

    def _greet(self, peer: socket.socket) -> None:
        """Take up a connection, unless it has gone meanwhile."""
        try:
            peer.setblocking(False)
            connection = ZmtpConnection(peer, sender_of(peer), self._message_bytes)
            connection.write(GREETING)
            self._connections[connection.fd] = connection
            self._epoll.register(connection.fd, _NEWS)
        except OSError:
            self._connections.pop(peer.fileno(), None)
            peer.close()

    def _tell_full(self) -> None:
        if not self._is_full:
            self._is_full, count = True, len(self._connections)
            words = "%d clients are connected and more wait: raise server.max_clients or the limit of open files (%d)"
            log.warning(words, count, file_limit(), extra=event("clients-wait", clients=count))

    def send(self, route: Route, frame: bytes) -> None:
        """Send one reply without waiting for the peer; what its kernel does not take now is kept for it.

        A reply to a peer that is gone is counted as lost, and so is what is kept for a dropped one.
        """
        connection = route.connection
        with connection.lock:
            try:
                connection.send((*route.envelope, frame))
                if connection.unsent:
                    self._listen_on(connection)
            except (OSError, MemoryError):
                self._drop(connection)
                return
        if abs(connection.held_bytes - connection.counted_bytes) >= COUNTED_BYTES:
            self._count(connection)

    def _count(self, connection: ZmtpConnection) -> None:
        """Count what a connection holds now; drop the one that holds most if that is too much in all."""
        with self._lock:
            if self._connections.get(connection.fd) is connection:
                held = connection.held_bytes
                self._held_bytes += held - connection.counted_bytes
                connection.counted_bytes = held
        if connection.unsent_bytes > UNREAD_BYTES:
            self._shed(connection, "does not read its replies")
        while self._held_bytes > self._most_held_bytes:
            with self._lock:
                greediest = max(self._connections.values(), key=lambda each: each.counted_bytes)
            self._shed(greediest, "holds most of server.peers_mb, which is used up")

    def _shed(self, connection: ZmtpConnection, why: str) -> None:
        held_mb, client = connection.held_bytes / 1e6, connection.sender.name
        fields = event("peer-shed", client=client, held_mb=held_mb)
        log.warning("%s is dropped, with %.1f MB held for it: it %s", client, held_mb, why, extra=fields)
        with connection.lock:
            self._drop(connection)

    def _drop(self, connection: ZmtpConnection) -> None:
        """Hang up; replies that it has not read are lost. The caller holds the connection's lock."""
        lost = len(connection.unsent)
        if lost:
            fields = event("replies-lost", count=lost)
            log.warning("replies are lost: the client is gone, or does not read", extra=fields)
        with self._lock:
            self.lost_replies += lost
            connection.unsent.clear()
            connection.unsent_bytes = 0
            if self._connections.get(connection.fd) is connection:
                del self._connections[connection.fd]
                self._held_bytes -= connection.counted_bytes
        connection.peer.close()
        if self._is_full:
            self._accept()

    @property
    def is_quiet(self) -> bool:
        """Whether no message waits to be read and no reply waits for its reader."""
        waiting = select.poll()
        for connection in list(self._connections.values()):
            if connection.unsent:
                return False
            waiting.register(connection.fd, select.POLLIN)
        return not waiting.poll(0)

    def shut(self) -> None:
        """Accept nobody any more: new connections wait for the next process that listens there."""
        self._is_shut = True

    def close(self) -> None:
        """Hang up on everybody; replies that wait for their readers are lost."""
        for connection in list(self._connections.values()):
            with connection.lock:
                self._drop(connection)
        self._listening.close()
        self._epoll.close()
        self._event_fd.close()


MOST_ENVELOPE_BYTES = 4096  # ids of 255 bytes, over more proxies than anybody puts one behind another


class Route(NamedTuple):
    """Where a reply goes. envelope: the frames that it begins with, as its request did."""

    connection: ZmtpConnection
    envelope: tuple[bytes, ...] = ()


class Message(NamedTuple):
    """One message as it came: where its reply goes, its frames without the envelope, and who sent it."""

    route: Route
    frames: list[memoryview]
    sender: UserIdentity


def unwrapped(frames: list[memoryview]) -> tuple[tuple[bytes, ...], list[memoryview]]:
    """Return the envelope of a message, to its empty delimiter, and what follows it (ZeroMQ RFC 28).

    REQ sends the delimiter alone, with ZMQ_REQ_CORRELATE a number before it, and each proxy puts a peer's id before
    them. Who sends no delimiter has no envelope; an empty frame at the very end is an image and delimits nothing.
    """
    for at, frame in enumerate(frames[:-1]):
        if not len(frame):
            envelope, rest = frames[: at + 1], frames[at + 1 :]
            is_one = sum(map(len, envelope)) <= MOST_ENVELOPE_BYTES
            return (tuple(map(bytes, envelope)), rest) if is_one else ((), frames)
    return (), frames
