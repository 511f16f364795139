"""Checks every request before its body is read: the token or its site, how many there are, and the size of its body."""

from __future__ import annotations

import socket

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jetsel.base.errors import BusyError, ImageTooLargeError, NotAllowedError
from jetsel.gateway.connections import LET_IN
from jetsel.gateway.errors import body_of
from jetsel.gateway.settings import bears
from jetsel.gateway.sites import refusal


class _TooLargeError(Exception):
    """More came than was announced, or than may be."""


class Limits:
    """ASGI: answers 401 without the token, 503 beside too many others, 413 for a large body; else hands on.

    Without a token it answers 403 to web pages of others (sites.py).
    """

    def __init__(
        self, app: ASGIApp, *, token: str | None, behind_proxy: bool, max_body_mb: float, concurrency: int
    ) -> None:
        self._app = app
        self._token = token
        self._names = None if behind_proxy else frozenset({socket.gethostname().lower(), socket.getfqdn().lower()})
        self._most = int(max_body_mb * 1e6)
        self._most_requests = concurrency
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        refused = self._refused(scope["method"], headers)
        if refused is not None:
            await refused(scope, receive, send)
            return
        self._under_way += 1
        scope.setdefault("state", {})[LET_IN] = True
        try:
            await self._bounded(scope, receive, send, headers.get(b"content-length", "0"))
        finally:
            self._under_way -= 1

    def _refused(self, method: str, headers: dict[bytes, str]) -> JSONResponse | None:
        """Return the reply to a request that is not let in, None to one that is."""
        if self._token is None:
            if (reason := refusal(method, headers, self._names)) is not None:
                return JSONResponse(body_of(NotAllowedError(reason)), 403)
        elif not bears(headers.get(b"authorization"), self._token):
            error = NotAllowedError("send the gateway's token: Authorization: Bearer TOKEN")
            return JSONResponse(body_of(error), 401, {"WWW-Authenticate": "Bearer"})
        if self._under_way >= self._most_requests:
            busy = BusyError(f"{self._most_requests} requests are under way: ask later, or raise --concurrency")
            return JSONResponse(body_of(busy), 503, {"Retry-After": "1"})
        return None

    async def _bounded(self, scope: Scope, receive: Receive, send: Send, announced: str) -> None:
        """Serve one request whose body must stay below the limit."""
        if announced.isdecimal() and int(announced) > self._most:
            await self._too_large()(scope, receive, send)
            return
        left = self._most

        async def bounded() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise _TooLargeError
            return message

        try:
            await self._app(scope, bounded, send)
        except _TooLargeError:  # no path begins its reply before it has the body
            await self._too_large()(scope, receive, send)

    def _too_large(self) -> JSONResponse:
        """Refuse, and leave the connection open: uvicorn throws the rest away, and whoever still sends can read why."""
        error = ImageTooLargeError(f"a body may have {self._most} bytes: send less, or raise --max-body-mb")
        return JSONResponse(body_of(error), 413)
