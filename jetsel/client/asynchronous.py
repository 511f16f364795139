"""The asyncio client: many requests at once on one connection, with replies in any order."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Literal, overload

from jetsel.base.errors import JetselError, NoReplyError
from jetsel.client.link import Attempts, DaemonConnection
from jetsel.client.photograph import Channels, Photograph, payload_of
from jetsel.client.settings import (
    BoxesXywh,
    ClientSettings,
    Options,
    R,
    RequestOptions,
    box_results,
    classify_request,
    error_of,
    error_of_ended_connection,
    reply_as,
    timeout_error,
)
from jetsel.wire import (
    PROTOCOL_VERSION,
    Answer,
    Answers,
    Failure,
    Reload,
    Reloaded,
    Reply,
    Request,
    Status,
    StatusReply,
    decode_reply,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack  # for the type checker only, so it need not be installed


class ClosedError(NoReplyError):
    """The client was closed during a call; a retry makes no sense."""

    retry = False


class Exchange:
    """One connection in one event loop, and the calls that wait for its replies. The loop watches its descriptors.

    ZeroMQ's descriptors signal a change once, and any use of the socket may consume the signal. Therefore `pump` runs
    after every request, and repeats until the socket reports that nothing is left.
    """

    def __init__(self, link: DaemonConnection, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._link = link
        self._waiting: dict[str, asyncio.Future[Reply]] = {}  # by request id
        self._unsent: deque[tuple[str, bytes, bytes | memoryview | None]] = deque()  # request id, JSON, image
        self.is_open = True
        for descriptor in link.descriptors:
            loop.add_reader(descriptor, self.pump)

    async def ask(self, request_id: str, message: bytes, image: bytes | memoryview | None, attempts: Attempts) -> Reply:
        """Send a request and return its reply. Raises NoDaemonError, NoReplyError; a cancelled one is not sent."""
        future: asyncio.Future[Reply] = self.loop.create_future()
        self._waiting[request_id] = future
        timer = self.loop.call_later(attempts.left_ms / 1e3, _fail, future, timeout_error(self._link, attempts))
        self._unsent.append((request_id, message, image))
        self.pump()
        try:
            return await future
        finally:
            timer.cancel()
            self._waiting.pop(request_id, None)

    def close(self, reason: JetselError | None = None) -> None:
        """Close the connection; waiting calls raise `reason`, or ClosedError for None."""
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
        """Receive replies, send waiting requests and detect the connection's end, until nothing is left to do."""
        while self.is_open:
            can_receive, can_send = self._link.ready()
            if can_receive:
                self._deliver(self._link.receive())
            elif self._link.end is not None:
                self.close(error_of_ended_connection(self._link))
            elif can_send and self._unsent:
                request_id, message, image = self._unsent.popleft()
                if request_id in self._waiting:  # otherwise its caller has given up
                    self._link.send(message, image)
            else:
                return

    def _deliver(self, frame: bytes | None) -> None:
        """Pass a reply to the call that waits for it; drop it if that call has ended. Close after an invalid reply."""
        if frame is None:
            return
        try:
            reply = decode_reply(frame)
        except JetselError as error:
            self.close(error)  # this peer speaks another protocol
            return
        if isinstance(reply, Failure) and reply.id is None:
            self.close(error_of(reply))  # the daemon could not read one of our requests
            return
        future = self._waiting.get(reply.id or "")
        if future is not None and not future.done():
            future.set_result(reply)


def _fail(future: asyncio.Future[Reply], error: JetselError) -> None:  # unless its reply has come
    if not future.done():
        future.set_exception(error)


@dataclass(eq=False)
class AsyncClient(ClientSettings):
    """Like Client, for asyncio: any number of calls may run at once, and each may be cancelled.

    It works in one event loop at a time. Leave the `async with`, or call `close`, before the loop ends.
    """

    _exchange: Exchange | None = field(init=False, repr=False, default=None)  # None until the first call

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; running calls raise NoReplyError. A later call connects again."""
        if self._exchange is not None:
            self._exchange.close()
            self._exchange = None

    @overload
    async def classify(self, image: Photograph, *, boxes: None = None, **options: Unpack[Options]) -> Answer: ...

    @overload
    async def classify(
        self,
        image: Photograph,
        *,
        boxes: BoxesXywh,
        boxes_unit: Literal["pixels", "shares"] = "pixels",
        **options: Unpack[Options],
    ) -> list[Answer | JetselError]: ...

    async def classify(
        self,
        image: Photograph,
        *,
        boxes: BoxesXywh | None = None,
        boxes_unit: Literal["pixels", "shares"] = "pixels",
        channels: Channels = "bgr",
        timeout_ms: float | None = None,
        **options: Unpack[RequestOptions],
    ) -> Answer | list[Answer | JetselError]:
        """Return the answer, as Client.classify does. An array must not change until the answer arrives."""
        if boxes is not None and not len(boxes):
            return []
        if isinstance(image, str | os.PathLike):
            data, pixels = await asyncio.to_thread(payload_of, image, channels, self.max_image_mb)
        else:
            data, pixels = payload_of(image, channels, self.max_image_mb)
        request = classify_request(pixels, boxes, boxes_unit, options)
        if request.boxes is not None:
            return box_results(await self._ask(request, data, timeout_ms, Answers))
        return await self._ask(request, data, timeout_ms, Answer)

    async def status(self, *, timeout_ms: float | None = None) -> StatusReply:
        """Return the daemon's state, also while it loads."""
        return await self._ask(Status(PROTOCOL_VERSION, ""), None, timeout_ms, StatusReply)

    async def reload(self, *, timeout_ms: float | None = None) -> Reloaded:
        """Make the daemon read its configuration, models and calibrations again; for administrators."""
        return await self._ask(Reload(PROTOCOL_VERSION, ""), None, timeout_ms, Reloaded)

    async def _ask(
        self, request: Request, image: bytes | memoryview | None, timeout_ms: float | None, expects: type[R]
    ) -> R:
        """Send the request, again if errors allow it; return its reply of the type `expects`, or raise its error."""
        attempts = self._attempts(request, timeout_ms)
        while True:
            try:
                exchange = self._open()
                request_id, message = self._encode(request, attempts)
                return reply_as(await exchange.ask(request_id, message, image, attempts), expects)
            except JetselError as error:
                pause_s = attempts.pause_s(error) if self.retry else None
                if pause_s is None:
                    raise
            await asyncio.sleep(pause_s)

    def _open(self) -> Exchange:
        """Return the running loop's exchange; make a new one if there is none or its connection has ended."""
        loop = asyncio.get_running_loop()
        if self._exchange is not None and self._exchange.loop is loop:
            self._exchange.pump()  # the daemon may have closed it since the last call
        if self._exchange is None or not self._exchange.is_open or self._exchange.loop is not loop:
            self.close()
            self._exchange = Exchange(self._connect(), loop)
        return self._exchange
