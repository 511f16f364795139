"""The socket for requests, which every thread of the daemon may use: a ZeroMQ ROUTER of our own.

libzmq is not used here, because its ROUTER ends the process if a peer disconnects while its messages are unread
(docs/security.md). Idle threads wait at one epoll instance, which wakes one of them for each event (EPOLLET, epoll(7)):
that thread reads the message and usually carries it to its reply.
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

MESSAGE_ROOM_BYTES = 131_072  # for the JSON and the envelope, in addition to the largest image
COUNTED_BYTES = 65_536  # a connection's bytes are counted anew if they changed by this much
UNREAD_BYTES = 32_000_000  # limit of unread replies for one peer
_WATCHED_EVENTS = select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET
_CLOSED_EVENTS = select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR


class Port:
    """Receives requests from all connections, and sends replies. Any thread may call."""

    def __init__(self, listener: Listener, max_image_bytes: int, limits: ServerSettings) -> None:
        """Serve at a listening socket, which this object closes. max_image_bytes: limit of an image."""
        self.endpoints = [f"ipc://{listener.path}"]
        self.lost_replies = 0  # number of replies whose client was gone
        self.max_image_mb = max_image_bytes / 1e6  # fixed until the next start; reloads do not change it
        self._message_bytes = max_image_bytes + MESSAGE_ROOM_BYTES
        self._most_held_bytes = int(limits.peers_mb * 1e6)
        self._most_clients = max(1, min(limits.max_clients, file_limit() - RESERVED_FILES))
        self._lock = threading.Lock()  # Guards the fields below. Take it after a connection's lock, never before.
        self._connections: dict[int, ZmtpConnection] = {}  # by descriptor
        self._held_bytes = 0  # of all connections
        self._is_full = False  # whether the limit was logged; then `_drop` accepts waiting clients
        self._is_shut = False
        self._event_fd = EventFd()
        self._listening = socket.socket(fileno=listener.fd)
        self._listening.setblocking(False)
        self._epoll = select.epoll()
        self._epoll.register(self._event_fd.fd, select.EPOLLIN | select.EPOLLET)
        self._epoll.register(self._listening, _WATCHED_EVENTS)

    def wake(self) -> None:
        """Wake one thread that waits in `receive`, or the next that would."""
        self._event_fd.set()

    def receive(self, timeout_s: float, max_events: int = 1) -> list[Message] | None:
        """Wait for at most `max_events` events of connections; return the messages that they bring, usually one each.

        The list is empty after `wake` or a new connection. None: nothing happened within timeout_s.
        """
        messages: list[Message] = []
        events_by_fd = self._epoll.poll(timeout_s, max_events)  # other threads receive further events
        for descriptor, events in events_by_fd:
            connection = self._connections.get(descriptor)
            if connection is not None:
                messages += self._read(connection, events)
            elif descriptor == self._event_fd.fd:
                self._event_fd.clear()
            else:
                self._accept()
        if events_by_fd:
            return messages
        if timeout_s:
            self._accept()  # a descriptor or a connection's place may have become free
        return None

    def _read(self, connection: ZmtpConnection, events: int) -> list[Message]:
        """Read from a client; drop the connection if the client is gone or breaks the protocol. events: epoll's."""
        with connection.lock:
            try:
                connection.has_left |= bool(events & _CLOSED_EVENTS)
                if events & select.EPOLLOUT:
                    connection.flush()
                received = connection.receive()
                if connection.unsent or events & select.EPOLLOUT or not connection.is_drained:
                    self._watch_again(connection)
            except (OSError, ProtocolError, MemoryError) as error:
                fields = event("client-hung-up-on", client=connection.sender.name)
                log.debug("%s was dropped: %s", connection.sender.name, error, extra=fields)
                self._drop(connection)
                return []
        if abs(connection.held_bytes - connection.counted_bytes) >= COUNTED_BYTES:
            self._enforce_limits(connection)
        messages = []
        for frames in received:
            envelope, content = split_envelope(frames)
            messages.append(Message(Route(connection, envelope), content, connection.sender))
        return messages

    def _watch_again(self, connection: ZmtpConnection) -> None:
        """Make epoll report the connection again even without new data, so that any thread can read what is left."""
        self._epoll.modify(connection.fd, _WATCHED_EVENTS | (select.EPOLLOUT if connection.unsent else 0))

    def _accept(self) -> None:
        """Accept waiting clients as long as there is room; the others wait until a connection closes."""
        with self._lock:
            while not self._is_shut:
                if len(self._connections) >= self._most_clients:
                    if select.select([self._listening], [], [], 0)[0]:
                        self._warn_full()
                    return
                try:
                    peer = self._listening.accept()[0]
                except BlockingIOError:
                    self._is_full = False
                    return
                except OSError:  # no descriptor, or no memory, is free
                    self._warn_full()
                    return
                self._register(peer)

    def _register(self, peer: socket.socket) -> None:
        """Greet a new connection and watch it, unless it was closed meanwhile. The caller holds the lock."""
        try:
            peer.setblocking(False)
            connection = ZmtpConnection(peer, sender_of(peer), self._message_bytes)
            connection.write(GREETING)
            self._connections[connection.fd] = connection
            self._epoll.register(connection.fd, _WATCHED_EVENTS)
        except OSError:
            self._connections.pop(peer.fileno(), None)
            peer.close()

    def _warn_full(self) -> None:
        """Warn once that clients wait for a connection, until one is free again."""
        if not self._is_full:
            self._is_full, count = True, len(self._connections)
            words = "%d clients are connected and more wait: raise server.max_clients or the limit of open files (%d)"
            log.warning(words, count, file_limit(), extra=event("clients-wait", clients=count))

    def send(self, route: Route, frame: bytes) -> None:
        """Send one reply without waiting for the client, and keep what the kernel does not take now."""
        connection = route.connection
        with connection.lock:
            try:
                connection.send((*route.envelope, frame))
                if connection.unsent:
                    self._watch_again(connection)
            except (OSError, MemoryError):
                self._drop(connection)
                return
        if abs(connection.held_bytes - connection.counted_bytes) >= COUNTED_BYTES:
            self._enforce_limits(connection)

    def _enforce_limits(self, connection: ZmtpConnection) -> None:
        """Update a connection's byte count; drop the connection that holds most if the total exceeds its limit."""
        with self._lock:
            if self._connections.get(connection.fd) is connection:
                held = connection.held_bytes
                self._held_bytes += held - connection.counted_bytes
                connection.counted_bytes = held
        if connection.unsent_bytes > UNREAD_BYTES:
            self._drop_greedy(connection, "does not read its replies")
        while self._held_bytes > self._most_held_bytes:
            with self._lock:
                greediest = max(self._connections.values(), key=lambda connection: connection.counted_bytes)
            self._drop_greedy(greediest, "holds most of server.peers_mb, which is used up")

    def _drop_greedy(self, connection: ZmtpConnection, reason: str) -> None:
        """Drop a connection for which too many bytes are held, and log the reason."""
        held_mb, client = connection.held_bytes / 1e6, connection.sender.name
        fields = event("peer-shed", client=client, held_mb=held_mb)
        log.warning("%s is dropped, with %.1f MB held for it: it %s", client, held_mb, reason, extra=fields)
        with connection.lock:
            self._drop(connection)

    def _drop(self, connection: ZmtpConnection) -> None:
        """Close a connection; its unread replies are lost. The caller holds the connection's lock."""
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
        """Whether no received message waits for the daemon, and no reply for its client, as far as the kernel knows."""
        waiting = select.poll()
        for connection in list(self._connections.values()):
            if connection.unsent:
                return False
            waiting.register(connection.fd, select.POLLIN)
        return not waiting.poll(0)

    def shut(self) -> None:
        """Accept no new connections: the clients wait for the next process that listens there."""
        self._is_shut = True

    def close(self) -> None:
        """Close all connections; unread replies are lost."""
        for connection in list(self._connections.values()):
            with connection.lock:
                self._drop(connection)
        self._listening.close()
        self._epoll.close()
        self._event_fd.close()


MOST_ENVELOPE_BYTES = 4096  # room for ids of 255 bytes over more proxies than anybody chains


class Route(NamedTuple):
    """Destination of a reply. envelope: the first frames of the request, which route its reply through proxies."""

    connection: ZmtpConnection
    envelope: tuple[bytes, ...] = ()


class Message(NamedTuple):
    """A received message: the route of its reply, its frames without the envelope, and the user who sent it."""

    route: Route
    frames: list[memoryview]
    sender: UserIdentity


def split_envelope(frames: list[memoryview]) -> tuple[tuple[bytes, ...], list[memoryview]]:
    """Return a message's envelope, up to its empty delimiter, and the frames after it (ZeroMQ RFC 28).

    REQ sends the delimiter alone, ZMQ_REQ_CORRELATE a number before it, and each proxy adds a peer's id before them.
    Without a delimiter there is no envelope; an empty last frame is an image, not a delimiter.
    """
    for i, frame in enumerate(frames[:-1]):
        if not len(frame):
            envelope, rest = frames[: i + 1], frames[i + 1 :]
            is_envelope = sum(map(len, envelope)) <= MOST_ENVELOPE_BYTES
            return (tuple(map(bytes, envelope)), rest) if is_envelope else ((), frames)
    return (), frames
