"""The sockets that requests come over, which every thread of the daemon may use: ipc, and tcp where it is configured.

Threads that have nothing to do sleep here, and each event rouses one of them: all wait at one epoll instance, where
every descriptor tells of news once (EPOLLET, epoll(7)).
"""

from __future__ import annotations

import select
import socket
from collections.abc import Callable

from jetsel.bell import Bell
from jetsel.config import Server as Limits
from jetsel.daemon import loopback
from jetsel.daemon.access.keyring import Keyring
from jetsel.daemon.curve.router import Router
from jetsel.daemon.late import RETRY_MS
from jetsel.daemon.listener import Listener
from jetsel.daemon.message import Message, Route, undelimited
from jetsel.daemon.zmtp.server import Server
from jetsel.daemon.zmtp.wire import message as as_sent

HEARTBEAT_MS = 1000  # no thread sleeps longer, whatever happens
FRAME_ROOM_BYTES = 65_536  # frames may be so much larger than an image may be; who sends a larger one is hung up on


class Port:
    """Receives from and sends over both; either may be absent."""

    def __init__(
        self,
        listener: Listener | None,
        tcp: str | None,
        max_image_bytes: int,
        keyring: Keyring | None = None,
        limits: Limits | None = None,
    ) -> None:
        """keyring: whose keys are let in over tcp; None: everybody who reaches it, without a key."""
        limits = limits or Limits()
        frame_bytes = max_image_bytes + FRAME_ROOM_BYTES
        self._turn_bytes = max_image_bytes
        self._bell = Bell()
        self._epoll = select.epoll()
        self._epoll.register(self._bell.fd, select.EPOLLIN | select.EPOLLET)
        self.endpoints: list[str] = []
        self.elsewhere: Callable[[], int] = _nobody  # how many are connected over tcp
        self._far: Router | None = None
        listening: list[socket.socket] = []
        if listener is not None:
            listening.append(socket.socket(fileno=listener.fd))
            self.endpoints.append(f"ipc://{listener.path}")
        if tcp is not None and keyring is not None:
            self._far = Router(tcp, frame_bytes, keyring, limits.peer_timeout_s)
        elif tcp is not None:
            listening.append(loopback.listen(tcp))
            self.endpoints.append(loopback.endpoint_of(listening[-1]))
        self._near = Server(listening, self._epoll, frame_bytes, limits, lambda: self.elsewhere())
        if self._far is not None:
            self._epoll.register(self._far.fd, select.EPOLLIN | select.EPOLLET)
            self.endpoints.append(self._far.endpoint)
        self._closed = False
        self._has_called = False
        self._has_just_heard = False  # a thread that has slept need not look again for what it woke to
        self.heartbeat_ms: float = HEARTBEAT_MS

    @property
    def router(self) -> Router | None:
        """What serves tcp with keys."""
        return self._far

    @property
    def clients(self) -> int:
        """How many are connected, but for those over tcp with keys."""
        return self._near.clients

    @property
    def held_mb(self) -> float:
        """What messages of these clients take that have not come to their end."""
        return self._near.held_bytes / 1e6

    @property
    def lost_replies(self) -> int:
        """How many replies found no reader."""
        return sum(server.lost_replies for server in (self._near, self._far) if server is not None)

    def waiter(self) -> Callable[[], None]:
        """Return what a thread calls to sleep until a message may have come, `wake` was called, or it is time."""
        return self._sleep

    def _sleep(self) -> None:
        is_late = any(server.has_late for server in (self._near, self._far) if server is not None)
        self._hear((RETRY_MS if is_late else self.heartbeat_ms) / 1e3, is_awake=False)
        self._has_just_heard = True

    def _hear(self, timeout_s: float, *, is_awake: bool) -> None:
        for descriptor, events in self._epoll.poll(timeout_s):
            if descriptor == self._bell.fd:
                self._bell.heard()
                if is_awake:
                    self._bell.ring()  # it was for one that sleeps
                else:
                    self._has_called = False
            elif self._far is None or descriptor != self._far.fd:
                self._near.hears(descriptor, events)

    def wake(self) -> None:
        """Rouse one thread that sleeps, or the next that would."""
        self._bell.ring()

    def _call(self) -> None:
        """Rouse one thread that sleeps, unless that is under way: rings that nobody hears add up."""
        if not self._has_called:
            self._has_called = True
            self._bell.ring()

    def receive(self, limit: int) -> list[Message]:
        """Return up to `limit` messages that have come, fewer large ones, without waiting; retry late replies first."""
        messages: list[Message] = []
        if self._closed:
            return messages
        if not self._has_just_heard:  # before either looks: each event is told once
            self._hear(0.0, is_awake=True)
        self._has_just_heard = False
        if self._far is not None:
            messages += self._far.receive(limit)
        for token, sender, frames in self._near.receive(limit, self._turn_bytes):
            content, is_delimited = undelimited(frames)
            messages.append(Message(Route(token, is_delimited), content, sender))
        if self._near.has_more:
            self._call()  # this thread may go and compute: another reads on
        return messages

    @property
    def is_quiet(self) -> bool:
        """Whether no message waits to be taken and no reply waits for its reader."""
        if not self._closed:
            self._hear(0.0, is_awake=True)
        is_quiet = all(server.is_quiet for server in (self._near, self._far) if server is not None)
        if not is_quiet and not self._closed:
            self._call()  # whoever would have heard of it
        return is_quiet

    def send(self, route: Route, frame: bytes) -> None:
        """Send one reply without waiting for the peer.

        A peer that does not read may only be slow to be scheduled: its reply is tried again for a while. What a peer
        that is gone, or goes on not reading, loses is counted.
        """
        if isinstance(route.peer, int):
            self._near.send(route.peer, as_sent((b"", frame) if route.delimited else (frame,)))
        elif self._far is not None:
            self._far.send(route.peer, (b"", frame) if route.delimited else (frame,))

    def shut(self) -> None:
        """Let nobody in any more but over tcp with keys: who connects waits for whoever listens there next."""
        self._near.shut()

    def close(self) -> None:
        """Close the sockets; what was sent is given half a second to leave."""
        self._closed = True
        self._near.close()
        if self._far is not None:
            self._far.close()
        self._epoll.close()
        self._bell.close()

    def reload_keys(self) -> list[str]:
        """Read again whose keys are let in; return what changed. Raises ReloadFailedError and changes nothing."""
        return [] if self._far is None else self._far.reload_keys()


def _nobody() -> int:
    return 0
