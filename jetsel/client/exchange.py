"""Requests under way on one link inside an event loop: sent as it has room, and each reply given to its own waiter."""

from __future__ import annotations

import asyncio
from collections import deque

from jetsel.client.attempts import Attempts
from jetsel.client.link import Link
from jetsel.client.settings import end_of, error_of, too_late
from jetsel.errors import JetselError, NoReplyError
from jetsel.wire import Failure, Reply, decode_reply


class ClosedError(NoReplyError):
    """The caller closed the client while a call was under way: trying again is not what was meant."""

    retry = False


class Exchange:
    """One link in one running loop. The loop watches its descriptors, so there is no task to cancel or to lose.

    ZeroMQ's descriptors tell of a change once, and any use of the socket may swallow that: `pump` goes on until the
    socket itself says that nothing is left, and runs after every request.
    """

    def __init__(self, link: Link, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._link = link
        self._waiting: dict[str, asyncio.Future[Reply]] = {}
        self._unsent: deque[tuple[str, bytes, bytes | memoryview | None]] = deque()
        self.is_open = True
        for descriptor in link.descriptors:
            loop.add_reader(descriptor, self.pump)

    async def ask(self, request_id: str, message: bytes, image: bytes | memoryview | None, attempts: Attempts) -> Reply:
        """Send a request and return its reply; raises NoDaemonError or NoReplyError. Cancelling forgets the request."""
        future: asyncio.Future[Reply] = self.loop.create_future()
        self._waiting[request_id] = future
        timer = self.loop.call_later(attempts.left_ms / 1e3, _fail, future, too_late(self._link, attempts))
        self._unsent.append((request_id, message, image))
        self.pump()
        try:
            return await future
        finally:
            timer.cancel()
            self._waiting.pop(request_id, None)

    def close(self, reason: JetselError | None = None) -> None:
        """Hang up; whoever still waits gets the reason."""
        if not self.is_open:
            return
        self.is_open = False
        if not self.loop.is_closed():
            for descriptor in self._link.descriptors:
                self.loop.remove_reader(descriptor)
        self._link.close()
        for future in self._waiting.values():
            _fail(future, reason or ClosedError("this client was closed before the answer came"))
        self._waiting.clear()
        self._unsent.clear()

    def pump(self) -> None:
        """Take the replies that are there, send what there is room for, notice the link's end, until nothing moves."""
        while self.is_open:
            can_receive, can_send = self._link.ready()
            if can_receive:
                self._settle(self._link.receive())
            elif self._link.end is not None:
                self.close(end_of(self._link))
            elif can_send and self._unsent:
                request_id, message, image = self._unsent.popleft()
                if request_id in self._waiting:  # else its caller has given up
                    self._link.send(message, image)
            else:
                return

    def _settle(self, frame: bytes | None) -> None:
        """Give a reply to whoever waits for it; those of callers that gave up are dropped."""
        if frame is None:
            return
        try:
            reply = decode_reply(frame)
        except JetselError as error:
            self.close(error)  # whatever this peer is, it answers nobody
            return
        if isinstance(reply, Failure) and reply.id is None:
            self.close(error_of(reply))  # it is about one of ours that the daemon could not read
            return
        future = self._waiting.get(reply.id or "")
        if future is not None and not future.done():
            future.set_result(reply)


def _fail(future: asyncio.Future[Reply], error: JetselError) -> None:
    if not future.done():
        future.set_exception(error)
