"""Checks every request before its body is read: the token or its site, how many there are, and the size of its body."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jetsel.base.errors import BadRequestError, BusyError, ImageTooLargeError, NotAllowedError
from jetsel.gateway.connections import LET_IN
from jetsel.gateway.errors import body_of
from jetsel.gateway.settings import bears, ip_address


class _TooLargeError(Exception):
    """More came than was announced, or than may be."""


class RequestLimits:
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
        if (coding := headers.get(b"content-encoding", "").strip()).lower() not in ("", "identity"):
            words = (
                f"the body is compressed ({coding[:20]}): send it as it is, since image files are compressed already"
            )
            return JSONResponse(body_of(BadRequestError(words)), 400)
        if self._under_way >= self._most_requests:
            busy = BusyError(f"{self._most_requests} requests are under way: try again later, or raise --concurrency")
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
        """Refuse, and leave the connection open: uvicorn discards the rest, and the client can read why."""
        error = ImageTooLargeError(f"the body exceeds {self._most} bytes: send less, or raise --max-body-mb")
        return JSONResponse(body_of(error), 413)


FORMS = ("", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain")
"""Content types that a browser sends to another site without asking it first (Fetch, CORS-safelisted)."""
LOCAL = (".localhost", ".home.arpa", ".internal", ".lan", ".local")
"""Nobody can register a name under these, so that it cannot be made to resolve to this machine."""


def refusal(method: str, headers: Mapping[bytes, str], names: frozenset[str] | None) -> str | None:
    """Return why a request is refused, None if it is not. names: of this machine; None: any host is allowed."""
    host = headers.get(b"host", "")
    if names is not None and host and not _is_local(host, names):
        return (
            f"this gateway does not answer for the host {host[:80]}: use http://localhost or an address; "
            "if a reverse proxy forwards that name, start the gateway with --behind-proxy"
        )
    if _is_of_another_site(method, headers, host):
        return "a web page of another site sent this: open the gateway's own page, or use --token-file"
    return None


def _is_local(host: str, names: frozenset[str]) -> bool:
    """Whether a Host header has an address, a name without a domain, or one that no other site can have."""
    try:
        name = (urlsplit(f"//{host}").hostname or "").removesuffix(".")
    except ValueError:  # half an IPv6 address
        return False
    return "." not in name or name in names or name.endswith(LOCAL) or ip_address(name) is not None


def _is_of_another_site(method: str, headers: Mapping[bytes, str], host: str) -> bool:
    """Whether a browser sent this for a page of another site. Other clients send neither of the two headers."""
    site = headers.get(b"sec-fetch-site")
    if site is not None:
        is_page = (headers.get(b"sec-fetch-mode"), headers.get(b"sec-fetch-dest")) == ("navigate", "document")
        is_link = method in ("GET", "HEAD") and is_page  # not into a frame
        return site not in ("same-origin", "none") and not is_link
    origin = headers.get(b"origin")
    if origin is None or headers.get(b"content-type", "").partition(";")[0].strip().lower() not in FORMS:
        return False
    own = {f"{scheme}://{name}" for scheme in ("http", "https") for name in (host, headers.get(b"x-forwarded-host"))}
    return origin.lower() not in {address.lower() for address in own}
