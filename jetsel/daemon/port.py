"""The ROUTER socket that every thread of the daemon may use, one at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

import zmq

from jetsel.bell import Bell
from jetsel.config import PEER_TIMEOUT_S
from jetsel.daemon import peers, routing
from jetsel.daemon.access.guard import Guard
from jetsel.daemon.access.keyring import Keyring
from jetsel.daemon.identity import Identity, identify, parse_peer_address
from jetsel.daemon.late import RETRY_MS, LateReplies
from jetsel.daemon.listener import Listener
from jetsel.daemon.routing import RoutingIds
from jetsel.daemon.wake import Waiter
from jetsel.errors import ConfigError, NotAllowedError

HIGH_WATER_MARK = 8  # messages for each peer and direction: libzmq holds them before we see anything
MORE_TO_COME = zmq.NOBLOCK | zmq.SNDMORE  # made once: enum flags cost a microsecond to join
_READABLE = int(zmq.POLLIN)  # so do they to compare
HEARTBEAT_MS = 1000  # no thread sleeps longer, whatever happens
FRAME_ROOM_BYTES = 65_536  # the socket takes frames so much larger than an image may be; a larger one disconnects
HANDSHAKE_S = 5.0  # at most, whatever peer_timeout_s: what a peer sends until it is let in is held for nobody
MOST_PARTS = 64  # of a message, its peer's id included; a longer one is dropped, and its peer hung up on
PARTS_PER_TURN = 1000  # taken off the socket before other threads may have it
KEEPALIVE_PROBES = 2  # with as much time before each as before the first


class Route(NamedTuple):
    """Where a reply goes: the peer's identity, and whether its request began with REQ's empty delimiter."""

    peer: bytes
    delimited: bool


class Message(NamedTuple):
    """One message as it came: where its reply goes, its frames, and what the socket knows of its peer."""

    route: Route
    frames: list[memoryview]
    last_part: zmq.Frame
    guard: Guard | None = None  # None: there is none, as all peers are on ipc

    @property
    def sender(self) -> Identity:
        """Who sent it, as keys are now."""
        over_tcp = None if self.guard is None else self.guard.identify(self._property("User-Id"))
        return over_tcp or identify(self._property("Peer-Address"))

    def check(self) -> None:
        """Raise NotAllowedError where its sender's key was revoked since it connected."""
        if self.guard is not None and (refusal := self.sender.refusal) is not None:
            raise NotAllowedError(refusal)

    def _property(self, name: str) -> str | None:
        try:
            return str(self.last_part.get(name))
        except zmq.ZMQError:
            return None


class Port:
    """A ROUTER behind a lock, and a bell for the threads that sleep until it has something.

    ZeroMQ sockets may move between threads behind a full memory barrier, which the lock is. Their descriptor tells of
    news once, and sending can swallow that: whoever sends calls `receive` afterwards, until it returns nothing, or
    `wake`.
    """

    def __init__(
        self,
        listener: Listener | None,
        tcp: str | None,
        max_image_bytes: int,
        keyring: Keyring | None = None,
        peer_timeout_s: float = PEER_TIMEOUT_S,
    ) -> None:
        """keyring: whose keys are let in over tcp; None: everybody's who reaches it, without a key."""
        routing.seed()
        self._context = zmq.Context(io_threads=1)
        self._socket = self._context.socket(zmq.ROUTER)
        self._ids = RoutingIds(routing.first_of(self._context, self._socket))
        self._socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
        self._socket.setsockopt(zmq.RCVHWM, HIGH_WATER_MARK)
        self._socket.setsockopt(zmq.SNDHWM, HIGH_WATER_MARK)
        self._socket.setsockopt(zmq.MAXMSGSIZE, max_image_bytes + FRAME_ROOM_BYTES)
        self._socket.setsockopt(zmq.LINGER, 500)
        self._turn_bytes = max_image_bytes
        self._limit_silence(peer_timeout_s)
        self._guard: Guard | None = None
        self.endpoints: list[str] = []
        if listener is not None:
            self._socket.setsockopt(zmq.USE_FD, listener.fd)
            self._socket.bind(f"ipc://{listener.path}")
            self._socket.setsockopt(zmq.USE_FD, -1)
            self.endpoints.append(f"ipc://{listener.path}")
        if tcp is not None:
            # Options hold for the addresses that are bound from here on: those of ipc stand as they are.
            self._guard = Guard(self._context, self._socket, keyring, peer_timeout_s)
            self._bind_tcp(tcp)
        self._lock = threading.Lock()
        self._closed = False
        self._bell = Bell()
        self._parts: list[zmq.Frame] = []  # of a message that is not read to its end
        self._n_parts = 0
        self._late = LateReplies()
        self.lost_replies = 0
        self.delivered: Callable[[int], None] = _unheard  # told the descriptor that each message came over
        self.heartbeat_ms: float = HEARTBEAT_MS

    def _limit_silence(self, seconds: float) -> None:
        """Have a peer cut off that does not greet, or whose machine is gone without a word, in this time; see Stalls.

        The kernel finds the latter: where nothing is sent by its probes (tcp(7), SO_KEEPALIVE), and else by what the
        peer's own kernel does not take (TCP_USER_TIMEOUT, which libzmq calls ZMQ_TCP_MAXRT).
        """
        self._socket.setsockopt(zmq.HANDSHAKE_IVL, int(min(seconds, HANDSHAKE_S) * 1e3))
        pause_s = max(1, round(seconds / (1 + KEEPALIVE_PROBES)))
        self._socket.setsockopt(zmq.TCP_KEEPALIVE, 1)
        self._socket.setsockopt(zmq.TCP_KEEPALIVE_IDLE, pause_s)
        self._socket.setsockopt(zmq.TCP_KEEPALIVE_INTVL, pause_s)
        self._socket.setsockopt(zmq.TCP_KEEPALIVE_CNT, KEEPALIVE_PROBES)
        self._socket.setsockopt(zmq.TCP_MAXRT, int(seconds * 1e3))

    def _bind_tcp(self, endpoint: str) -> None:
        self._socket.setsockopt(zmq.IPV6, "[" in endpoint)
        try:
            self._socket.bind(endpoint)
        except zmq.ZMQError as error:
            self._close_socket()
            raise ConfigError(
                f"server.tcp: cannot listen at {endpoint}: {zmq.strerror(error.errno or 0)}; "
                'example, with a port that is free: tcp = "tcp://127.0.0.1:5555"'
            ) from None
        self.endpoints.append(str(self._socket.get_string(zmq.LAST_ENDPOINT)))

    def waiter(self) -> Callable[[], None]:
        """Return what one thread calls to sleep until a message may have come, `wake` was called, or it is time."""
        waiter = Waiter(int(self._socket.getsockopt(zmq.FD)), self._bell)
        return lambda: waiter.wait(RETRY_MS if self._late.waiting else self.heartbeat_ms)

    def wake(self) -> None:
        """Rouse one thread that sleeps, or the next that would."""
        self._bell.ring()

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

    def send(self, route: Route, frame: bytes) -> None:
        """Send one reply without waiting for the peer.

        A peer at its high-water mark may only be slow to be scheduled: its reply is tried again for a while. What
        a peer that is gone, or does not read, loses is counted.
        """
        frames = (route.peer, b"", frame) if route.delimited else (route.peer, frame)
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
        self._bell.close()

    def _close_socket(self) -> None:
        if self._guard is not None:
            self._guard.close()
        self._socket.close()
        self._context.term()

    def reload_keys(self) -> list[str]:
        """Read again whose keys are let in; return what changed. Raises ReloadFailedError and changes nothing."""
        keyring = None if self._guard is None else self._guard.keyring
        return [] if keyring is None else keyring.reload()

    def _message(self, parts: list[zmq.Frame]) -> Message:
        frames = [part.buffer for part in parts[1:]]
        delimited = bool(frames) and len(frames[0]) == 0 and len(frames) > 1
        return Message(Route(parts[0].bytes, delimited), frames[1:] if delimited else frames, parts[-1], self._guard)


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
    if descriptor is None or found is None:
        return
    address = str(part.get("Peer-Address"))
    credentials = parse_peer_address(address)
    if found.owner == (peers.network(address) if credentials is None else f"uid {credentials[0]}"):
        peers.hang_up(descriptor, found.inode)


def _unheard(descriptor: int) -> None:
    """Nobody asks who delivers."""
