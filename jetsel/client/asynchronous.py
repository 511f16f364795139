"""The asyncio client: many requests at once on one connection, answered as they finish."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal

from jetsel.client.exchange import Exchange
from jetsel.client.photograph import Channels, Photograph, payload_of
from jetsel.client.settings import R, Settings, result
from jetsel.errors import JetselError
from jetsel.wire import (
    PROTOCOL_VERSION,
    Answer,
    Classify,
    Criterion,
    Reload,
    Reloaded,
    Request,
    Status,
    StatusReply,
)


@dataclass(eq=False)
class AsyncClient(Settings):
    """As Client, for asyncio: any number of calls may be under way at once, and each may be cancelled.

    One event loop at a time. Leave the `async with`, or call `close`, before the loop ends.
    """

    _exchange: Exchange | None = field(init=False, repr=False, default=None)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Hang up; calls under way raise NoReplyError. A later call connects again."""
        if self._exchange is not None:
            self._exchange.close()
            self._exchange = None

    async def classify(
        self,
        image: Photograph,
        *,
        family: str | None = None,
        top_k: int = 5,
        policy: str | None = None,
        model: str | None = None,
        deadline_ms: float | None = None,
        criterion: Criterion = "top1",
        on_doubt: Literal["use", "refuse"] | None = None,
        explain: bool = False,
        on_device: bool = False,
        least_accuracy: float | None = None,
        most_energy_mj: float | None = None,
        channels: Channels = "bgr",
        timeout_ms: float | None = None,
    ) -> Answer:
        """Return what the photograph shows.

        image: a path; an encoded image as bytes; or pixels, (height, width, 3) uint8 in the order `channels` says, or
        gray (height, width) uint8. What is None is decided by the daemon's configuration; docs/protocol.md describes
        every setting. An array must stay as it is until the answer has come. Raises OSError where a path cannot be
        read, BadImageError and ImageTooLargeError before sending, and what every call raises.
        """
        if isinstance(image, str | os.PathLike):
            data, pixels = await asyncio.to_thread(payload_of, image, channels, self.max_image_mb)
        else:
            data, pixels = payload_of(image, channels, self.max_image_mb)
        request = Classify(
            PROTOCOL_VERSION,
            "",
            family,
            top_k,
            policy,
            model,
            deadline_ms,
            criterion,
            on_doubt,
            explain,
            pixels,
            on_device,
            least_accuracy,
            most_energy_mj,
        )
        return await self._ask(request, data, timeout_ms, Answer)

    async def status(self, *, timeout_ms: float | None = None) -> StatusReply:
        """Return what the daemon serves, and its state; it answers while it loads, too."""
        return await self._ask(Status(PROTOCOL_VERSION, ""), None, timeout_ms, StatusReply)

    async def reload(self, *, timeout_ms: float | None = None) -> Reloaded:
        """Have the daemon read its configuration, models and calibrations again; for its administrators."""
        return await self._ask(Reload(PROTOCOL_VERSION, ""), None, timeout_ms, Reloaded)

    async def _ask(
        self, request: Request, image: bytes | memoryview | None, timeout_ms: float | None, kind: type[R]
    ) -> R:
        attempts = self._attempts(request, timeout_ms)
        while True:
            try:
                exchange = self._open()
                request_id, message = self._write(request, attempts)
                return result(await exchange.ask(request_id, message, image, attempts), kind)
            except JetselError as error:
                pause_s = attempts.pause_s(error) if self.retry else None
                if pause_s is None:
                    raise
            await asyncio.sleep(pause_s)

    def _open(self) -> Exchange:
        """Return the exchange of the running loop, new where there is none, or where its link has ended."""
        loop = asyncio.get_running_loop()
        if self._exchange is not None and self._exchange.loop is loop:
            self._exchange.pump()  # it may have been hung up since the last call
        if self._exchange is None or not self._exchange.is_open or self._exchange.loop is not loop:
            self.close()
            self._exchange = Exchange(self._connect(), loop)
        return self._exchange
