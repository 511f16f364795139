"""The tcp socket of a daemon with keys: libzmq's ROUTER, which every thread may use, one at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable

import zmq

from jetsel.daemon.access.guard import Guard
from jetsel.daemon.access.keyring import Keyring
from jetsel.daemon.curve import peers, routing
from jetsel.daemon.curve.routing import RoutingIds
from jetsel.daemon.late import LateReplies
from jetsel.daemon.loopback import KEEPALIVE_PROBES, cannot_listen, pause_of
from jetsel.daemon.message import Message, Route, undelimited

HIGH_WATER_MARK = 8  # messages for each peer and direction: libzmq holds them before we see anything
MORE_TO_COME = zmq.NOBLOCK | zmq.SNDMORE  # made once: enum flags cost a microsecond to join
_READABLE = int(zmq.POLLIN)  # so do they to compare
HANDSHAKE_S = 5.0  # at most, whatever peer_timeout_s: what a peer sends until it is let in is held for nobody
MOST_PARTS = 64  # of a message, its peer's id included; a longer one is dropped, and its peer hung up on
PARTS_PER_TURN = 1000  # taken off the socket before other threads may have it


class Router:
    """A ROUTER behind a lock.

    ZeroMQ sockets may move between threads behind a full memory barrier, which the lock is. Their descriptor tells of
    news once, and sending can swallow that: whoever sends calls `receive` afterwards, until it returns nothing, or
    `wake`.
    """

    def __init__(self, endpoint: str, frame_bytes: int, keyring: Keyring, peer_timeout_s: float) -> None:
        """frame_bytes: who sends a larger frame is hung up on. keyring: whose keys are let in."""
        routing.seed()
        self._context = zmq.Context(io_threads=1)
        self._socket = self._context.socket(zmq.ROUTER)
        self._ids = RoutingIds(routing.first_of(self._context, self._socket))
        self._socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
        self._socket.setsockopt(zmq.RCVHWM, HIGH_WATER_MARK)
        self._socket.setsockopt(zmq.SNDHWM, HIGH_WATER_MARK)
        self._socket.setsockopt(zmq.MAXMSGSIZE, frame_bytes)
        self._socket.setsockopt(zmq.LINGER, 500)
        self._turn_bytes = frame_bytes
        self._limit_silence(peer_timeout_s)
        self._guard = Guard(self._context, self._socket, keyring, peer_timeout_s)
        self.endpoint = self._bind(endpoint)
        self.fd = int(self._socket.getsockopt(zmq.FD))
        self._lock = threading.Lock()
        self._closed = False
        self._parts: list[zmq.Frame] = []  # of a message that is not read to its end
        self._n_parts = 0
        self._late = LateReplies()
        self.lost_replies = 0
        self.delivered: Callable[[int], None] = _unheard  # told the descriptor that each message came over

    def _limit_silence(self, seconds: float) -> None:
        """Have a peer cut off that does not greet, or whose machine is gone without a word, in this time; see Stalls.

        The kernel finds the latter: where nothing is sent by its probes (tcp(7), SO_KEEPALIVE), and else by what the
        peer's own kernel does not take (TCP_USER_TIMEOUT, which libzmq calls ZMQ_TCP_MAXRT).
        """
        self._socket.setsockopt(zmq.HANDSHAKE_IVL, int(min(seconds, HANDSHAKE_S) * 1e3))
        pause_s = pause_of(seconds)
        self._socket.setsockopt(zmq.TCP_KEEPALIVE, 1)
        self._socket.setsockopt(zmq.TCP_KEEPALIVE_IDLE, pause_s)
        self._socket.setsockopt(zmq.TCP_KEEPALIVE_INTVL, pause_s)
        self._socket.setsockopt(zmq.TCP_KEEPALIVE_CNT, KEEPALIVE_PROBES)
        self._socket.setsockopt(zmq.TCP_MAXRT, int(seconds * 1e3))

    def _bind(self, endpoint: str) -> str:
        """Return where it listens."""
        self._socket.setsockopt(zmq.IPV6, "[" in endpoint)
        try:
            self._socket.bind(endpoint)
        except zmq.ZMQError as error:
            self._close_socket()
            raise cannot_listen(endpoint, zmq.strerror(error.errno or 0)) from None
        return str(self._socket.get_string(zmq.LAST_ENDPOINT))

    @property
    def has_late(self) -> bool:
        """Whether a reply waits for its reader."""
        return bool(self._late.waiting)

    def receive(self, limit: int) -> list[Message]:
        """Return up to `limit` messages that have come, fewer large ones, without waiting; retry late replies first."""
        while True:
            with self._lock:
                if self._late.waiting:
                    self.lost_replies += self._late.retry(self._try)
                messages = self._take(limit)
                if messages or not self._n_parts:
                    return messages

    def _take(self, limit: int) -> list[Message]:
        """Take whole messages, or so many parts of one that other threads should have their turn."""
        messages: list[Message] = []
        taken_bytes = 0  # of messages that nobody has admitted: past a large one, these are decided first
        # Looking first is cheaper than the exception of a socket that has nothing.
        while not self._closed and len(messages) < limit and taken_bytes < self._turn_bytes and self._is_readable():
            if not self._read_on():
                break
            parts, self._parts, self._n_parts = self._parts, [], 0
            if parts:
                if (descriptor := descriptor_of(parts[-1])) is not None:
                    self.delivered(descriptor)
                taken_bytes += sum(map(len, parts))
                messages.append(self._message(parts))
        return messages

    def _read_on(self) -> bool:
        """Read on in a message; return whether that was its end. There is nothing of it where it is nobody's."""
        for _ in range(PARTS_PER_TURN):
            part = self._socket.recv(copy=False)
            self._n_parts += 1
            if self._n_parts <= MOST_PARTS:
                self._parts.append(part)
            elif self._parts:
                hang_up_on(part)
                self._parts = []
            if not part.more:
                if self._parts and not self._ids.is_sound(self._parts[0].bytes):
                    hang_up_on(part)
                    self._parts = []
                return True
        return False

    @property
    def is_quiet(self) -> bool:
        """Whether no message waits to be taken and no reply waits for its reader."""
        with self._lock:
            return not self._late.waiting and not (self._closed or self._is_readable())

    def _is_readable(self) -> bool:
        return bool(int(self._socket.getsockopt(zmq.EVENTS)) & _READABLE)

    def send(self, peer: bytes, content: tuple[bytes, ...]) -> None:
        """Send one reply without waiting for the peer; see Port.send."""
        frames = (peer, *content)
        with self._lock:
            if not self._try(frames) and not self._late.keep(frames):
                self.lost_replies += 1

    def _try(self, frames: tuple[bytes, ...]) -> bool:
        """Send without waiting; return False where the peer is at its high-water mark."""
        if self._closed:
            return True
        try:
            for frame in frames[:-1]:
                self._socket.send(frame, MORE_TO_COME)  # only the first, the peer's name, can fail
            self._socket.send(frames[-1], zmq.NOBLOCK)
        except zmq.Again:
            return False
        except zmq.ZMQError:  # EHOSTUNREACH: it is gone
            self.lost_replies += 1
        return True

    def close(self) -> None:
        """Close the socket; what was sent is given half a second to leave."""
        with self._lock:
            self._closed = True
            self._close_socket()

    def _close_socket(self) -> None:
        self._guard.close()
        self._socket.close()
        self._context.term()

    def reload_keys(self) -> list[str]:
        """Read again whose keys are let in; return what changed. Raises ReloadFailedError and changes nothing."""
        return self._guard.keyring.reload()

    def _message(self, parts: list[zmq.Frame]) -> Message:
        frames, is_delimited = undelimited([part.buffer for part in parts[1:]])
        sender = self._guard.identify(str(parts[-1].get("User-Id")))  # libzmq lets no peer in that has none
        return Message(Route(parts[0].bytes, is_delimited), frames, sender)


def descriptor_of(part: zmq.Frame) -> int | None:
    """Return what connection a part of a message came over; None for one that ended as soon as it was accepted."""
    try:
        return int(part.get(zmq.SRCFD))
    except zmq.ZMQError:  # libzmq knows a connection by where it comes from, which the kernel has forgotten
        return None


def hang_up_on(part: zmq.Frame) -> None:
    """End the connection that a part of a message came over, or another of its owner's that has its descriptor now."""
    descriptor = descriptor_of(part)
    found = None if descriptor is None else peers.who(descriptor)
    if descriptor is not None and found is not None and found.owner == peers.network(str(part.get("Peer-Address"))):
        peers.hang_up(descriptor, found.inode)


def _unheard(descriptor: int) -> None:
    """Nobody asks who delivers."""
