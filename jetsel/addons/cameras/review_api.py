"""The page of `jetsel review` and its requests, on the gateway's server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from jetsel.addons.cameras.review import Review, ReviewDecision
from jetsel.base.errors import BadRequestError, JetselError
from jetsel.client import AsyncClient
from jetsel.gateway.classify import unique_values
from jetsel.gateway.page import FILES, HEADERS
from jetsel.gateway.server import application
from jetsel.gateway.settings import GatewaySettings

_PAGE = Path(__file__).parent / "page"
_FILES = {"/": _PAGE / "review.html", "/review.js": _PAGE / "review.js", "/page.css": FILES["/page.css"]}
_KINDS = {".png": "image/png", ".webp": "image/webp"}  # all others are JPEG
_SUGGESTED = 5


class ReviewApi:
    """Routes for the review of one folder."""

    def __init__(self, review: Review, client: AsyncClient) -> None:
        self._review, self._client = review, client

    def routes(self) -> list[Route]:
        """Return every route."""
        return [
            *(Route(path, self._file) for path in _FILES),
            Route("/review/next", self._next),
            Route("/review/image", self._image),
            Route("/review/suggest", self._suggest),
            Route("/review/decide", self._decide, methods=["POST"]),
            Route("/review/undo", self._undo, methods=["POST"]),
        ]

    async def _file(self, request: Request) -> Response:
        return FileResponse(_FILES[request.url.path], headers=HEADERS)

    async def _next(self, request: Request) -> Response:
        return _json(await asyncio.to_thread(self._review.pending, _only(request, "after")))

    async def _image(self, request: Request) -> Response:
        path = _only(request, "path") or ""
        content = await asyncio.to_thread(self._review.read, path)
        kind = _KINDS.get(Path(path).suffix.lower(), "image/jpeg")
        return Response(content, media_type=kind, headers={"Cache-Control": "no-store"})

    async def _suggest(self, request: Request) -> Response:
        """Return the daemon's likeliest classes, identifier and label; none if the daemon does not answer."""
        content = await asyncio.to_thread(self._review.read, _only(request, "path") or "")
        try:
            answer = await self._client.classify(content, top_k=_SUGGESTED, on_doubt="use")
        except JetselError:
            return _json([])
        return _json([[one.wnid, one.label] for one in answer.top_k])

    async def _decide(self, request: Request) -> Response:
        try:
            decision = msgspec.json.decode(await request.body(), type=ReviewDecision)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise BadRequestError(f"the decision: {error}") from None
        await asyncio.to_thread(self._review.decide, decision)
        return _json(await asyncio.to_thread(self._review.pending, decision.image))

    async def _undo(self, _: Request) -> Response:
        return _json({"image": await asyncio.to_thread(self._review.undo)})


def _only(request: Request, name: str) -> str | None:
    """Return the query's only parameter, None without it; raises BadRequestError for others."""
    return unique_values(request.query_params.multi_items(), [name]).get(name)


def _json(value: object) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json", headers={"Cache-Control": "no-store"})


def review_application(folder: Path, reviewed: Path | None, settings: GatewaySettings) -> Starlette:
    """Return the ASGI application of one review; raises ConfigError as Review does."""
    client = AsyncClient(settings.endpoint, timeout_ms=settings.timeout_ms)
    return application(settings, ReviewApi(Review(folder, reviewed), client).routes(), client.close)
