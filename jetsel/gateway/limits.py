"""Limits what clients may cost: a connection before its request is complete, and a request before its body is read.

If too many connections are open, a new one replaces one that waits for a request. So clients that open many connections
and send nothing lose their own, and a client that sends a request at once is served.
"""

from __future__ import annotations

import asyncio
import resource
import socket
from collections import Counter
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from jetsel.base.errors import BadRequestError, BusyError, ImageTooLargeError, NotAllowedError
from jetsel.gateway.errors import error_body
from jetsel.gateway.settings import GatewaySettings, has_token, ip_address

ADMITTED = "admitted"  # key in the state of a request that passed the checks of RequestLimits
HEAD_BYTES = 65_536  # largest head of a request
HEAD_TIMEOUT_S = 10.0  # a connection without a complete head is closed after this time
IDLE_CONNECTIONS = 256  # in addition to those with a request under way
RESERVED_FILES = 320  # for the daemon's sockets, and for connections accepted before another is closed
HEAD_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


def connection_limit(concurrency: int) -> int:
    """Return the limit of open connections: of requests and idle ones, as far as the limit of open files allows."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(16, min(concurrency + IDLE_CONNECTIONS, files - RESERVED_FILES))


class BoundedConnection(HttpToolsProtocol):
    """uvicorn's connection, but with limits of a head's size and time, and of open connections (`limit`)."""

    def __init__(self, *args: Any, limit: int, **options: Any) -> None:
        super().__init__(*args, **options)
        self._limit = limit
        self._unread_bytes = 0  # received since the last byte of a body: a head, or trailers
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer of a new connection, and close another connection if there are too many."""
        super().connection_made(transport)
        self._start_head_timer()
        if len(self.connections) > self._limit:
            _connection_to_close(cast("set[BoundedConnection]", self.connections)).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer of a closed connection."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received bytes, and reject a head that is too long."""
        self._unread_bytes += len(data)
        super().data_received(data)
        if self._unread_bytes > HEAD_BYTES and not self.transport.is_closing():
            self.transport.write(HEAD_TOO_LARGE)
            self.transport.close()

    def on_headers_complete(self) -> None:
        """Stop the timer, because the request's head has arrived, and begin the request."""
        self._unread_bytes = 0
        self._stop_timer()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Reset the count of a head's bytes, because these belong to a body."""
        self._unread_bytes = 0
        super().on_body(body)

    def on_response_complete(self) -> None:
        """Start the timer for the next request, unless its head has come already."""
        super().on_response_complete()
        if self.is_idle and not self.transport.is_closing():
            self._start_head_timer()

    @property
    def is_idle(self) -> bool:
        """Whether the connection has no request that RequestLimits admitted and that is not answered yet."""
        cycle = self.cycle
        return cycle is None or cycle.response_complete or not cycle.scope["state"].get(ADMITTED)

    @property
    def ends_s(self) -> float:
        """Time at which the timer closes the connection, by the loop's clock; 0 if the timer is stopped."""
        return 0.0 if self._timer is None else self._timer.when()

    def _start_head_timer(self) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(HEAD_TIMEOUT_S, self.transport.abort)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _connection_to_close(connections: set[BoundedConnection]) -> BoundedConnection:
    """Return the longest waiting connection of the client address with the most; a new connection always waits."""
    idle = [connection for connection in connections if connection.is_idle and not connection.transport.is_closing()]
    addresses = {connection: connection.client and connection.client[0] for connection in idle}
    counts = Counter(addresses.values())
    return max(idle, key=lambda connection: (counts[addresses[connection]], -connection.ends_s))


class _TooLargeError(Exception):
    """A request's body has more bytes than allowed."""


class RequestLimits:
    """ASGI middleware: answers 401 without the token, 503 above the concurrency, 413 for a large body.

    If no token is configured, it answers 403 to requests from web pages of other sites.
    """

    def __init__(self, app: ASGIApp, settings: GatewaySettings) -> None:
        self._app = app
        self._token = settings.token
        names = {socket.gethostname().lower(), socket.getfqdn().lower()}
        self._host_names = None if settings.behind_proxy else frozenset(names)
        self._max_bytes = int(settings.max_body_mb * 1e6)
        self._max_requests = settings.concurrency
        self._running_requests = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on to the application."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        refused = self._refusal(scope["method"], headers)
        if refused is not None:
            await refused(scope, receive, send)
            return
        self._running_requests += 1
        scope.setdefault("state", {})[ADMITTED] = True
        try:
            await self._serve_bounded(scope, receive, send, headers.get(b"content-length", "0"))
        finally:
            self._running_requests -= 1

    def _refusal(self, method: str, headers: dict[bytes, str]) -> JSONResponse | None:
        """Return the reply that refuses a request without reading its body, None if it is admitted."""
        if self._token is None:
            if (reason := cross_site_refusal(method, headers, self._host_names)) is not None:
                return JSONResponse(error_body(NotAllowedError(reason)), 403)
        elif not has_token(headers.get(b"authorization"), self._token):
            error = NotAllowedError("send the gateway's token: Authorization: Bearer TOKEN")
            return JSONResponse(error_body(error), 401, {"WWW-Authenticate": "Bearer"})
        if (coding := headers.get(b"content-encoding", "").strip()).lower() not in ("", "identity"):
            words = f"the body is compressed ({coding[:20]}): send it as it is, as image files are compressed already"
            return JSONResponse(error_body(BadRequestError(words)), 400)
        if self._running_requests >= self._max_requests:
            busy = BusyError(f"{self._max_requests} requests are under way: try again later, or raise --concurrency")
            return JSONResponse(error_body(busy), 503, {"Retry-After": "1"})
        return None

    async def _serve_bounded(self, scope: Scope, receive: Receive, send: Send, length: str) -> None:
        """Serve a request, but refuse a body of too many bytes. length: its Content-Length header."""
        if length.isdecimal() and int(length) > self._max_bytes:
            await self._too_large()(scope, receive, send)
            return
        left_bytes = self._max_bytes

        async def receive_bounded() -> Message:
            """Receive the next part of the body; raises _TooLargeError if all parts exceed the limit."""
            nonlocal left_bytes
            message = await receive()
            left_bytes -= len(message.get("body", b""))
            if left_bytes < 0:
                raise _TooLargeError
            return message

        try:
            await self._app(scope, receive_bounded, send)
        except _TooLargeError:  # no reply has begun, because every path reads the whole body first
            await self._too_large()(scope, receive, send)

    def _too_large(self) -> JSONResponse:
        """Return the 413 reply; uvicorn discards the rest of the body, so that the client can read the reason."""
        error = ImageTooLargeError(f"the body exceeds {self._max_bytes} bytes: send less, or raise --max-body-mb")
        return JSONResponse(error_body(error), 413)


FORM_TYPES = ("", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain")
"""Content types that a browser lets any page send to any site unasked (Fetch standard, CORS-safelisted)."""
LOCAL_DOMAINS = (".localhost", ".home.arpa", ".internal", ".lan", ".local")
"""Nobody can register a name under these, so that no attacker's name can resolve to this machine."""


def cross_site_refusal(method: str, headers: Mapping[bytes, str], names: frozenset[str] | None) -> str | None:
    """Return why a browser's request is refused, None if it is not. names: this machine's; None allows any Host."""
    host = headers.get(b"host", "")
    if names is not None and host and not _is_local_host(host, names):
        return (
            f"this gateway does not answer for the host {host[:80]}: use http://localhost or an address; "
            "if a reverse proxy forwards that name, start the gateway with --behind-proxy"
        )
    if _is_of_another_site(method, headers, host):
        return "a web page of another site sent this: open the gateway's own page, or use --token-file"
    return None


def _is_local_host(host: str, names: frozenset[str]) -> bool:
    """Whether a Host header is an address, a name without a domain, or a name that no other site can have."""
    try:
        name = (urlsplit(f"//{host}").hostname or "").removesuffix(".")
    except ValueError:  # for example half an IPv6 address
        return False
    return "." not in name or name in names or name.endswith(LOCAL_DOMAINS) or ip_address(name) is not None


def _is_of_another_site(method: str, headers: Mapping[bytes, str], host: str) -> bool:
    """Whether a browser sent this for a page of another site. Only browsers send Sec-Fetch-Site and Origin."""
    site = headers.get(b"sec-fetch-site")
    if site is not None:
        is_page = (headers.get(b"sec-fetch-mode"), headers.get(b"sec-fetch-dest")) == ("navigate", "document")
        is_link = method in ("GET", "HEAD") and is_page  # no frame
        return site not in ("same-origin", "none") and not is_link
    origin = headers.get(b"origin")
    if origin is None or headers.get(b"content-type", "").partition(";")[0].strip().lower() not in FORM_TYPES:
        return False
    own = {f"{scheme}://{name}" for scheme in ("http", "https") for name in (host, headers.get(b"x-forwarded-host"))}
    return origin.lower() not in {address.lower() for address in own}
