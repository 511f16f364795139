"""What strangers may do before a request is let in: heads without end or bound, and more connections than there are."""

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from uvicorn.server import ServerState

from jetsel.gateway import limits
from jetsel.gateway.limits import BoundedConnection, RequestLimits
from jetsel.gateway.settings import GatewaySettings

TOKEN = "0123456789abcdef"
REQUEST = f"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
HALF = b"POST / HTTP/1.1\r\nHost: localhost\r\n"
LIMIT_S = 60.0  # for what takes milliseconds
Peer = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Open = Callable[..., Coroutine[Any, Any, Peer]]


async def answered(_: Request) -> Response:
    return PlainTextResponse("answer")


@asynccontextmanager
async def serving(most: int = 8) -> AsyncIterator[Open]:
    """Serve with MOST connections; yields a function that connects from an address and sends what it is given."""
    checks = Middleware(RequestLimits, GatewaySettings(token=TOKEN, max_body_mb=1.0, concurrency=2))
    config = uvicorn.Config(Starlette(routes=[Route("/", answered)], middleware=[checks]), log_config=None)
    state = ServerState()

    def made() -> BoundedConnection:
        return BoundedConnection(config=config, server_state=state, app_state={}, limit=most)

    server = await asyncio.get_running_loop().create_server(made, "127.0.0.1", 0)
    port, writers = server.sockets[0].getsockname()[1], []

    async def connect(sent: bytes = b"", address: str = "127.0.0.1") -> Peer:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
        writer.write(sent)
        writers.append(writer)
        return reader, writer

    yield connect
    for writer in writers:
        writer.close()
    server.close()


def in_time(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in a loop of its own, for no longer than LIMIT_S."""

    @functools.wraps(test)
    def run(**fixtures: Any) -> None:
        asyncio.run(asyncio.wait_for(test(**fixtures), LIMIT_S))

    return run


async def is_closed(peer: Peer) -> bool:
    """Wait until the gateway closes the connection."""
    with suppress(ConnectionError):
        await peer[0].read()
    return True


@pytest.mark.parametrize(
    "sent",
    [b"", HALF, HALF + b"Content-Length: 1000000\r\n\r\nx", REQUEST + b"GET"],
    ids=["silent", "half", "without-token", "second"],
)
@in_time
async def test_who_does_not_finish_a_head_is_hung_up_on(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HEAD_TIMEOUT_S", 0.05)
    async with serving() as connect:
        assert await is_closed(await connect(sent))


@pytest.mark.parametrize(
    "head", [HALF, REQUEST.replace(b"GET", b"POST")[:-2] + b"Transfer-Encoding: chunked\r\n\r\n0\r\n"]
)
@in_time
async def test_headers_without_bound_end_the_connection(head: bytes) -> None:
    async with serving() as connect:
        reader, writer = await connect(head)
        pieces = 0
        try:
            while not writer.is_closing() and pieces < 1000:
                writer.write(b"a: %s\r\n" % (b"x" * 10_000))
                pieces += 1
                await writer.drain()
        except ConnectionError:
            pass
        assert await is_closed((reader, writer))
        assert pieces < 1000


@in_time
async def test_the_head_s_limit_is_said_to_who_exceeds_it() -> None:
    async with serving() as connect:
        reader, _ = await connect(HALF + b"a: " + b"x" * 70_000)
        assert (await reader.readline()).startswith(b"HTTP/1.1 431 ")


@in_time
async def test_half_heads_of_many_connections_lock_nobody_out_and_lose_their_own() -> None:
    async with serving(most=8) as connect:
        other = await connect(REQUEST[:-2], "127.0.0.2")
        halves = [await connect(HALF) for _ in range(20)]
        for half in halves[:12]:
            assert await is_closed(half)
        assert (await (await connect(REQUEST))[0].readline()).startswith(b"HTTP/1.1 200 ")
        other[1].write(b"\r\n")
        assert (await other[0].readline()).startswith(b"HTTP/1.1 200 "), "the oldest, of another address"


@in_time
async def test_a_large_body_comes_over_one_kept_connection() -> None:
    post = REQUEST.replace(b"GET", b"POST")[:-2] + b"Content-Length: 900000\r\n\r\n" + b"x" * 900_000
    async with serving() as connect:
        reader, writer = await connect(post + REQUEST)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 405 ")
        assert b"200 OK" in await reader.readuntil(b"answer")
        writer.write(REQUEST)
        assert b"200 OK" in await reader.readuntil(b"answer")
