"""The page: its files, live status by server-sent events, and thumbnails, if the owner allows them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import plotly
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from jetsel import image
from jetsel.base.errors import BusyError, JetselError
from jetsel.client import AsyncClient
from jetsel.gateway import camera_states
from jetsel.gateway.errors import error_body

SIDE_PX = 96  # longer side of a thumbnail
QUALITY = 70  # of JPEG: about 3 KB for a thumbnail


class Thumbnails:
    """Thumbnails of the last images, by the id of their answers. limit: their number, 0 for none."""

    def __init__(self, limit: int, image_limits: image.Limits) -> None:
        self.limit = limit
        self._image_limits = image_limits
        self._thumbnails: OrderedDict[str, bytes] = OrderedDict()

    async def add(self, answer_id: str, picture: Any) -> None:
        """Make and keep a thumbnail of an answered image: a file's bytes, or pixels (height, width, 3) uint8 BGR."""
        if not self.limit:
            return
        thumbnail = await asyncio.to_thread(self._shrink, picture)
        if thumbnail is not None:
            self._thumbnails[answer_id] = thumbnail
            while len(self._thumbnails) > self.limit:
                self._thumbnails.popitem(last=False)

    def get(self, answer_id: str) -> bytes | None:
        """Return the JPEG thumbnail of an answer's image, None if there is none (any more)."""
        return self._thumbnails.get(answer_id)

    def _shrink(self, picture: Any) -> bytes | None:
        """Return an image as a small JPEG, None if it cannot be decoded."""
        try:
            bgr = picture if isinstance(picture, np.ndarray) else image.decode(picture, self._image_limits, SIDE_PX).bgr
        except JetselError:
            return None  # the daemon may read images that this process cannot
        shorter_px = round(SIDE_PX * min(bgr.shape[:2]) / max(bgr.shape[:2]))
        return image.jpeg(bgr, max(1, shorter_px), QUALITY)


HERE = Path(__file__).parent
_PAGE = HERE / "page.html"
_THUMBNAILS_KEPT = '<tbody id="recent">', '<tbody id="recent" data-thumbnails>'
FILES = {
    "/page.css": HERE / "page.css",
    "/page.js": HERE / "page.js",
    "/plotly.min.js": Path(plotly.__file__).parent / "package_data" / "plotly.min.js",
}
EVENT_INTERVAL_S = 1.0
MOST_VIEWERS = 32
STATUS_MS = 1000.0  # time limit of a request for the status
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' blob: data:; style-src 'self' 'unsafe-inline'; "
    "frame-ancestors 'none'",  # unsafe-inline, because plotly styles its charts with inline style elements
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
}


class _Events:
    """Serves /events to at most MOST_VIEWERS; an ASGI application, because that always learns when a viewer leaves."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._viewers = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events to one viewer until it leaves; raises BusyError if there are too many viewers."""
        if self._viewers >= MOST_VIEWERS:
            raise BusyError(f"{MOST_VIEWERS} pages are open already: close one")
        headers = {"Cache-Control": "no-store"}
        self._viewers += 1
        try:
            stream = StreamingResponse(self._stream(), media_type="text/event-stream", headers=headers)
            await stream(scope, receive, send)
        finally:
            self._viewers -= 1

    async def _stream(self) -> AsyncIterator[bytes]:
        """Yield the daemon's status, or the error if it fails, and the cameras' states each second."""
        while True:
            try:
                status = await self._client.status(timeout_ms=STATUS_MS)
                event = b"event: status\ndata: " + msgspec.json.encode(status)
            except JetselError as error:
                event = b"event: away\ndata: " + msgspec.json.encode(error_body(error))
            cameras = await asyncio.to_thread(camera_states.read)
            yield event + b"\n\nevent: cameras\ndata: " + msgspec.json.encode(cameras) + b"\n\n"
            await asyncio.sleep(EVENT_INTERVAL_S)


class PageApi:
    """Handlers of /, the page's files, /events and /thumbnails."""

    def __init__(self, client: AsyncClient, thumbnails: Thumbnails) -> None:
        self._events = _Events(client)
        self._thumbnails = thumbnails
        text = _PAGE.read_text("utf-8")
        self._text = text.replace(*_THUMBNAILS_KEPT) if thumbnails.limit else text  # page.js looks for it

    def routes(self) -> list[Route]:
        """Return every route."""
        return [
            Route("/", self._page),
            *(Route(path, self._file) for path in FILES),
            Route("/events", self._events, methods=["GET"]),
            Route("/thumbnails/{id}", self._thumbnail),
        ]

    async def _page(self, _: Request) -> Response:
        return HTMLResponse(self._text, headers=HEADERS)

    async def _file(self, request: Request) -> Response:
        return FileResponse(FILES[request.url.path], headers=HEADERS)

    async def _thumbnail(self, request: Request) -> Response:
        thumbnail = self._thumbnails.get(request.path_params["id"])
        return Response(status_code=204) if thumbnail is None else Response(thumbnail, media_type="image/jpeg")
