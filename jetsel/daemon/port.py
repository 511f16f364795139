"""The sockets that requests come over, which every thread of the daemon may use: ipc, and tcp where it is configured.

Threads that have nothing to do sleep here, and each event rouses one of them: all wait at one epoll instance, where
every descriptor tells of news once (EPOLLET, epoll(7)).
"""

from __future__ import annotations

import functools
import select
import socket
from collections.abc import Callable

from jetsel.bell import Bell
from jetsel.config import Server as Limits
from jetsel.daemon import tcp
from jetsel.daemon.access.keyring import Keyring
from jetsel.daemon.listener import Listener
from jetsel.daemon.message import Message, Route, undelimited
from jetsel.daemon.zmtp.entrance import AsksKey
from jetsel.daemon.zmtp.late import RETRY_MS
from jetsel.daemon.zmtp.server import Server

HEARTBEAT_MS = 1000  # no thread sleeps longer, whatever happens
FRAME_ROOM_BYTES = 65_536  # frames may be so much larger than an image may be; who sends a larger one is hung up on


class Port:
    """Receives from and sends over both; either may be absent."""

    def __init__(
        self,
        listener: Listener | None,
        endpoint: str | None,
        max_image_bytes: int,
        keyring: Keyring | None = None,
        limits: Limits | None = None,
    ) -> None:
        """endpoint: of tcp. keyring: whose keys are let in there; None: everybody who reaches it, without a key."""
        self._turn_bytes = max_image_bytes
        self._keyring = keyring
        self._bell = Bell()
        self._epoll = select.epoll()
        self._epoll.register(self._bell.fd, select.EPOLLIN | select.EPOLLET)
        self.endpoints: list[str] = []
        listening: list[socket.socket] = []
        if listener is not None:
            listening.append(socket.socket(fileno=listener.fd))
            self.endpoints.append(f"ipc://{listener.path}")
        if endpoint is not None:
            listening.append(tcp.listen(endpoint))
            self.endpoints.append(tcp.endpoint_of(listening[-1]))
        asks_key = None if keyring is None else _asks_key(keyring)
        frame_bytes = max_image_bytes + FRAME_ROOM_BYTES
        self._server = Server(listening, self._epoll, frame_bytes, limits or Limits(), asks_key)
        self._closed = False
        self._has_called = False
        self._has_just_heard = False  # a thread that has slept need not look again for what it woke to
        self.heartbeat_ms: float = HEARTBEAT_MS

    @property
    def lost_replies(self) -> int:
        """How many replies found no reader."""
        return self._server.lost_replies

    def waiter(self) -> Callable[[], None]:
        """Return what a thread calls to sleep until a message may have come, `wake` was called, or it is time."""
        return self._sleep

    def _sleep(self) -> None:
        self._hear((RETRY_MS if self._server.has_late else self.heartbeat_ms) / 1e3, is_awake=False)
        self._has_just_heard = True

    def _hear(self, timeout_s: float, *, is_awake: bool) -> None:
        for descriptor, events in self._epoll.poll(timeout_s):
            if descriptor == self._bell.fd:
                self._bell.heard()
                if is_awake:
                    self._bell.ring()  # it was for one that sleeps
                else:
                    self._has_called = False
            else:
                self._server.hears(descriptor, events)

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
        if not self._has_just_heard:  # before the server looks: each event is told once
            self._hear(0.0, is_awake=True)
        self._has_just_heard = False
        for token, sender, frames in self._server.receive(limit, self._turn_bytes):
            content, is_delimited = undelimited(frames)
            messages.append(Message(Route(token, is_delimited), content, sender))
        if self._server.has_more:
            self._call()  # this thread may go and compute: another reads on
        return messages

    @property
    def is_quiet(self) -> bool:
        """Whether no message waits to be taken and no reply waits for its reader."""
        if not self._closed:
            self._hear(0.0, is_awake=True)
        is_quiet = self._server.is_quiet
        if not is_quiet and not self._closed:
            self._call()  # whoever would have heard of it
        return is_quiet

    def send(self, route: Route, frame: bytes) -> None:
        """Send one reply without waiting for the peer.

        A peer that does not read may only be slow to be scheduled: its reply is tried again for a while. What a peer
        that is gone, or goes on not reading, loses is counted.
        """
        self._server.send(route.peer, (b"", frame) if route.delimited else (frame,))

    def shut(self) -> None:
        """Let nobody in any more: who connects waits for whoever listens there next."""
        self._server.shut()

    def close(self) -> None:
        """Close the sockets; what was sent is given half a second to leave."""
        self._closed = True
        self._server.close()
        self._epoll.close()
        self._bell.close()

    def reload_keys(self) -> list[str]:
        """Read again whose keys are let in; return what changed. Raises ReloadFailedError and changes nothing."""
        return [] if self._keyring is None else self._keyring.reload()


def _asks_key(keyring: Keyring) -> AsksKey:
    from jetsel.daemon.zmtp.curve import Curve  # with libsodium, which a daemon without keys need not load

    return functools.partial(Curve, keyring)
