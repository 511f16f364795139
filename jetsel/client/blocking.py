"""The blocking client: each call waits for its reply."""

from __future__ import annotations

import threading
import time
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
    error_of_ended_connection,
    reply_as,
    timeout_error,
)
from jetsel.wire import (
    PROTOCOL_VERSION,
    Answer,
    Answers,
    Reload,
    Reloaded,
    Request,
    Status,
    StatusReply,
    decode_reply,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack  # for the type checker only, so it need not be installed


@dataclass(eq=False)
class Client(ClientSettings):
    """Sends requests to a daemon and waits for the replies: `jetsel.Client().classify("cat.jpg").label`.

    Threads may share a client, but their calls then wait for each other; for parallel calls, give each thread its own
    client or use AsyncClient. Every call raises NoDaemonError if no daemon listens, NoReplyError after its timeout, and
    the daemon's errors as classes of jetsel.base.errors.
    """

    _link: DaemonConnection | None = field(init=False, repr=False, default=None)  # None until the first call
    _call_lock: threading.Lock = field(init=False, repr=False, default_factory=threading.Lock)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        self._hang_up()  # no thread can use the client any more, so no lock is needed

    def close(self) -> None:
        """Close the connection after the call that another thread may be running. A later call connects again."""
        with self._call_lock:
            self._hang_up()

    @overload
    def classify(self, image: Photograph, *, boxes: None = None, **options: Unpack[Options]) -> Answer: ...

    @overload
    def classify(
        self,
        image: Photograph,
        *,
        boxes: BoxesXywh,
        boxes_unit: Literal["pixels", "shares"] = "pixels",
        **options: Unpack[Options],
    ) -> list[Answer | JetselError]: ...

    def classify(
        self,
        image: Photograph,
        *,
        boxes: BoxesXywh | None = None,
        boxes_unit: Literal["pixels", "shares"] = "pixels",
        channels: Channels = "bgr",
        timeout_ms: float | None = None,
        **options: Unpack[RequestOptions],
    ) -> Answer | list[Answer | JetselError]:
        """Return the answer for the image; with `boxes`, an answer or an error for each box.

        image: a path; an encoded image as bytes; or pixels, (height, width, 3) uint8 in the order of `channels`, or
        gray (height, width) uint8. The daemon's configuration decides options that are None; docs/protocol.md describes
        them. boxes: at most 64, each x, y, width, height from the upper left of the upright image, in pixels or in
        shares of its sides. Raises OSError if a path is unreadable, BadImageError or ImageTooLargeError before sending,
        and the errors of every call.
        """
        if boxes is not None and not len(boxes):
            return []
        data, pixels = payload_of(image, channels, self.max_image_mb)
        request = classify_request(pixels, boxes, boxes_unit, options)
        if request.boxes is not None:
            return box_results(self._ask(request, data, timeout_ms, Answers))
        return self._ask(request, data, timeout_ms, Answer)

    def status(self, *, timeout_ms: float | None = None) -> StatusReply:
        """Return the daemon's state, also while it loads."""
        return self._ask(Status(PROTOCOL_VERSION, ""), None, timeout_ms, StatusReply)

    def reload(self, *, timeout_ms: float | None = None) -> Reloaded:
        """Make the daemon read its configuration, models and calibrations again; for administrators."""
        return self._ask(Reload(PROTOCOL_VERSION, ""), None, timeout_ms, Reloaded)

    def _ask(self, request: Request, image: bytes | memoryview | None, timeout_ms: float | None, expects: type[R]) -> R:
        """Send the request, again if errors allow it; return its reply of the type `expects`, or raise its error."""
        attempts = self._attempts(request, timeout_ms)
        if not self._call_lock.acquire(timeout=max(attempts.left_ms, 0) / 1e3):
            raise NoReplyError("another thread used this client for the whole timeout: give each thread its own")
        try:
            while True:
                try:
                    return self._attempt(request, image, attempts, expects)
                except JetselError as error:
                    pause_s = attempts.pause_s(error) if self.retry else None
                    if pause_s is None:
                        raise
                time.sleep(pause_s)
        finally:
            self._call_lock.release()

    def _attempt(self, request: Request, image: bytes | memoryview | None, attempts: Attempts, expects: type[R]) -> R:
        """Send the request once and return its reply; drop late replies to earlier requests. Raises its error."""
        link = self._open()
        request_id, message = self._encode(request, attempts)
        is_sent = link.send(message, image)
        while True:
            frame = link.receive()
            if frame is not None:
                reply = decode_reply(frame)
                if reply.id in (request_id, None):  # None: a failure, as the daemon could not read the request
                    return reply_as(reply, expects)
            elif link.end is not None:
                self._hang_up()
                raise error_of_ended_connection(link)
            elif attempts.left_ms <= 0:
                raise timeout_error(link, attempts)
            else:
                link.wait(attempts.left_ms, to_send=not is_sent)
                is_sent = is_sent or link.send(message, image)

    def _open(self) -> DaemonConnection:
        """Return a working connection: the existing one, or a new one if that has ended."""
        if self._link is not None and self._link.end is not None:
            self._hang_up()
        if self._link is None:
            self._link = self._connect()
        return self._link

    def _hang_up(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None
