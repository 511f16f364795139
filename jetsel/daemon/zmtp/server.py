"""The server of all peers: many, read and answered by whichever thread comes by.

libzmq would do all of this but for one thing: it ends the process where a peer that is let in sends a PING behind more
messages than are taken at once, and hangs up (libzmq 4.3.5, src/stream_engine_base.cpp, `out_event` after
`in_event_internal`; tests/system/test_hostile_peers.py). It also tells nothing of what it holds for whom, and its
thread stands between every request and the crew.
"""

from __future__ import annotations

import contextlib
import itertools
import select
import socket
import threading
import time
from collections.abc import Callable, Sequence

from jetsel.config import Server as Limits
from jetsel.daemon.identity import Identity
from jetsel.daemon.zmtp.connection import NEWS, Connection
from jetsel.daemon.zmtp.entrance import Arrival, AsksKey, Entrance
from jetsel.daemon.zmtp.late import RETRY_MS, LateReplies
from jetsel.daemon.zmtp.mechanism import RefusedError
from jetsel.daemon.zmtp.places import STRANGER
from jetsel.daemon.zmtp.room import HEAD_BYTES, Room
from jetsel.daemon.zmtp.strangers import Strangers
from jetsel.daemon.zmtp.wire import ProtocolError

HANDSHAKE_S = 5.0  # at most, whatever peer_timeout_s
GONE = "it hung up before it showed a key"
LINGER_S = 0.5  # for what was sent when the server closes
SWEEPS = 4  # in the time that a peer has
# Others wait for the lock meanwhile, so what one call does is bounded, however much comes:
PER_TURN = 8  # messages, or reads, of one peer before the next one's
TURNS = 64
SCRATCH_BYTES = 65_536
_GONE = select.EPOLLHUP | select.EPOLLERR
_LEFT = select.EPOLLRDHUP | _GONE

Found = tuple[int, Identity, list[memoryview]]  # whose (the token of its connection), who that is, and the message


class Server:
    """Any thread may call. Whoever sleeps does so at the epoll instance that is given, and hands on what it hears."""

    def __init__(
        self,
        listening: Sequence[socket.socket],
        epoll: select.epoll,
        frame_bytes: int,
        limits: Limits,
        asks_key: AsksKey | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """listening: ipc, tcp or both; this takes them over. frame_bytes: the largest frame.

        asks_key: for who comes over tcp; None: nobody needs a key.
        """
        self._listening = listening
        self._epoll = epoll
        self._frame_bytes = frame_bytes
        self._timeout_s = limits.peer_timeout_s
        self._room = Room(limits.peers_mb, limits.peer_timeout_s, now)
        self._now = now
        self._lock = threading.Lock()
        self._entrance = Entrance(listening, limits, asks_key, now)
        self._strangers = Strangers[Connection](now)
        self._tokens = itertools.count(1)
        self._by_fd: dict[int, Connection] = {}
        self._by_token: dict[int, Connection] = {}
        self._ready: dict[int, None] = {}  # descriptors that may have something, in their order
        self._scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._head = self._scratch[:HEAD_BYTES]
        self._late = LateReplies(epoll, now)
        self._sweep_s = 0.0
        self._unrouted = 0  # replies to peers that were gone already
        for socket_ in listening:
            socket_.setblocking(False)
            self._epoll.register(socket_, NEWS)

    @property
    def lost_replies(self) -> int:
        """How many found no reader."""
        return self._unrouted + self._late.lost

    @property
    def clients(self) -> int:
        """How many are connected."""
        return len(self._by_fd)

    @property
    def held_bytes(self) -> int:
        """What messages take that are not whole."""
        return self._room.bytes

    @property
    def promised_bytes(self) -> int:
        """What is still to come of those of them that are read on."""
        return self._room.promised_bytes

    @property
    def has_more(self) -> bool:
        """Whether `receive` has left something."""
        return bool(self._ready) or self._entrance.are_more_waiting

    @property
    def has_late(self) -> bool:
        """Whether a reply waits for its reader."""
        return bool(self._late)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing waits to be taken, and no reply for its reader."""
        with self._lock:
            return not self._ready and not self._late and not self._room.is_something_unread

    def hears(self, descriptor: int, events: int) -> None:
        """Take note of events at the epoll instance; the next `receive` looks."""
        with self._lock:
            connection = self._by_fd.get(descriptor)
            if connection is None:
                self._entrance.somebody_waits = True
            else:
                connection.may_have_more(has_left=bool(events & _LEFT))
                if not self._room.waits(connection):
                    self._ready[descriptor] = None
                elif events & _GONE:  # nobody is left to be answered
                    self._drop(connection)

    def receive(self, most: int, most_bytes: int) -> list[Found]:
        """Return up to so many messages that have come, of each peer in its turn; none waits behind another's."""
        found: list[Found] = []
        with self._lock:
            now_s = self._now()
            is_time_to_sweep = now_s >= self._sweep_s
            if self._late.are_due(now_s):
                self._try_late(now_s)
            if self._entrance.somebody_waits or is_time_to_sweep:
                for arrival in self._entrance.let_in(self._make_room):
                    self._greet(arrival, now_s)
            moved_bytes = 0
            for _ in range(TURNS):
                if not self._ready or len(found) >= most or moved_bytes >= most_bytes:
                    break
                connection = self._by_fd[next(iter(self._ready))]
                del self._ready[connection.fd]
                moved_bytes += self._read(connection, found, most, now_s)
            if is_time_to_sweep:  # last: this process may have stood still, and what was sent meanwhile is read first
                self._sweep(now_s)
            self._ready.update((c.fd, None) for c in self._room.go_on(self._by_fd.values()))
        return found

    def _read(self, connection: Connection, found: list[Found], most: int, now_s: float) -> int:
        """Take what one peer has sent, so much of it that others have their turn; return how many bytes that took.

        Looking at a frame counts as some bytes, and opening it as its own.
        """
        moved_bytes = 0
        try:
            for _ in range(PER_TURN):
                message = connection.take()
                moved_bytes += connection.looked_at_bytes
                if connection.place == STRANGER and connection.is_open and not self._settle(connection):
                    return moved_bytes
                if connection.to_send:
                    self._say(connection)
                if message is not None:
                    self._room.count(connection)
                    found.append((connection.token, connection.identity, message))
                    connection.begun_s = None
                    if len(found) >= most:
                        self._ready[connection.fd] = None
                        break
                elif connection.has_unread:
                    self._ready[connection.fd] = None
                    break
                elif (count := self._fill(connection)) is None:
                    break
                elif count == 0:
                    raise ConnectionError
                else:
                    moved_bytes += count
            else:
                self._ready[connection.fd] = None  # behind the others
        except RefusedError as error:
            self._refuse(connection, error)
            return moved_bytes
        except ProtocolError as error:
            self._drop(connection, str(error))
            return moved_bytes
        except (OSError, MemoryError):
            self._drop(connection, GONE)
            return moved_bytes
        self._room.count(connection)
        if connection.is_between:
            connection.begun_s = None
        elif connection.begun_s is None:
            connection.begun_s = now_s
        for surplus in self._room.surplus(self._by_fd.values()):
            self._drop(surplus)
        return moved_bytes

    def _fill(self, connection: Connection) -> int | None:
        """Read once, where there is room for the rest of its message; a handshake waits for none."""
        if not connection.is_open:
            return connection.fill(self._scratch)
        if connection.to_come_bytes:
            return connection.fill(self._scratch) if self._room.has_for(connection) else None
        return connection.fill(self._head if self._room.does_somebody_wait else self._scratch)

    def _settle(self, connection: Connection) -> bool:
        """Give one that has shown its key a place, before it hears that it may ask; False where it was hung up on."""
        self._strangers.leave(connection.token)
        if self._entrance.settle(connection):
            return True
        self._drop(connection)
        return False

    def _make_room(self, network: str) -> bool:
        """Hang up on a stranger for another one of this network; False where none is to go for it."""
        stranger = self._strangers.first_to_go(network)
        if stranger is not None:
            self._drop(stranger, "it had shown no key when others came")
        return stranger is not None

    def _refuse(self, connection: Connection, error: RefusedError) -> None:
        with contextlib.suppress(OSError):
            connection.send(error.answer)
        self._drop(connection, str(error))

    def send(self, token: int, frames: Sequence[bytes]) -> None:
        """Send one reply; where its peer reads slowly, it is tried again for a while. What is lost is counted."""
        with self._lock:
            connection = self._by_token.get(token)
            if connection is None:
                self._unrouted += 1
                return
            try:
                self._late.write(connection, connection.sealed(frames), is_reply=True)
            except (OSError, MemoryError):  # in the midst of it, for all that is known
                self._unrouted += 1
                self._drop(connection)

    def _say(self, connection: Connection) -> None:
        said, connection.to_send = connection.to_send, []
        for data in said:
            if connection not in self._late:  # who does not read is sent no PONG either
                self._late.write(connection, data, is_reply=False)

    def _try_late(self, now_s: float) -> None:
        for gone in self._late.try_again(now_s, self._timeout_s):
            self._drop(gone)

    def _greet(self, arrival: Arrival, now_s: float) -> None:
        peer, mechanism, place, network = arrival
        try:
            connection = Connection(peer, next(self._tokens), mechanism, place, self._frame_bytes, now_s)
            self._epoll.register(connection.fd, NEWS)
        except (OSError, MemoryError):
            self._entrance.leave(place)
            peer.close()
            return
        self._by_fd[connection.fd] = self._by_token[connection.token] = connection
        self._ready[connection.fd] = None
        if place == STRANGER:
            self._strangers.enter(connection.token, network, connection)

    def _drop(self, connection: Connection, why: str | None = None) -> None:
        """Hang up; what it was still to be sent is lost. why: told of a stranger."""
        if self._by_fd.pop(connection.fd, None) is None:
            return
        del self._by_token[connection.token]
        self._room.forget(connection)
        self._ready.pop(connection.fd, None)
        self._late.forget(connection)
        self._strangers.leave(connection.token)
        if why is not None and connection.place == STRANGER and not connection.is_open:
            self._entrance.refused(connection, why)
        self._entrance.leave(connection.place)
        connection.peer.close()

    def _sweep(self, now_s: float) -> None:
        """Hang up on those whose time is over, but for those of whom there is more to read."""
        self._sweep_s = now_s + min(1.0, self._timeout_s / SWEEPS)
        handshake_s = min(self._timeout_s, HANDSHAKE_S)
        for connection in list(self._by_fd.values()):
            connection.commands = 0
            if connection.is_open and not self._entrance.follow(connection):
                self._drop(connection)
                continue
            if connection.begun_s is None or connection.fd in self._ready or self._room.has_its_time(connection):
                continue
            most_s = self._timeout_s if connection.is_open else handshake_s
            if now_s - connection.begun_s > most_s:
                self._drop(connection, f"it did not greet within {most_s:g} s")
        for slow in self._room.sweep():
            self._ready.pop(slow.fd, None)
        self._entrance.look()

    def shut(self) -> None:
        """Let nobody in any more: who connects waits for whoever listens at that socket next."""
        with self._lock:
            self._entrance.shut()

    def close(self) -> None:
        """Hang up on everybody; what was sent is given half a second to leave."""
        give_up_s = self._now() + LINGER_S
        while self._late and self._now() < give_up_s:
            with self._lock:
                self._try_late(self._now())
            time.sleep(RETRY_MS / 1e3)
        with self._lock:
            for connection in list(self._by_fd.values()):
                self._drop(connection)
            self._entrance.shut()
            for listening in self._listening:
                self._epoll.unregister(listening)
                listening.close()
