"""`jetsel gateway` as a process: its routes, served by uvicorn at one address until a signal stops it."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from jetsel import image
from jetsel.base.errors import BadRequestError, ConfigError, JetselError
from jetsel.client import AsyncClient
from jetsel.gateway.classify import answer_classify
from jetsel.gateway.errors import error_body, error_response
from jetsel.gateway.inference import InferenceApi
from jetsel.gateway.limits import BoundedConnection, RequestLimits, connection_limit
from jetsel.gateway.metrics import answer_scrape
from jetsel.gateway.openapi import openapi_document
from jetsel.gateway.page import PageApi, Thumbnails
from jetsel.gateway.sender import Catalogue, Sender
from jetsel.gateway.settings import GatewaySettings

BACKLOG = 128
DRAIN_S = 10  # requests may take this long to complete after a signal


def open_listener(host: str, port: int) -> socket.socket:
    """Return a socket that listens at this address; raises ConfigError with the repair if it cannot."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # without it, asyncio leaves TCP_NODELAY off
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((host, port))
        opened.listen(BACKLOG)
    except OSError as error:
        opened.close()
        raise ConfigError(f"--listen {host}:{port}: {error.strerror or error}: name another with --listen") from None
    return opened


def run(served: Starlette, concurrency: int, opened: socket.socket) -> None:
    """Serve an application on a listening socket until SIGINT or SIGTERM. concurrency: most requests at a time."""
    config = uvicorn.Config(
        served,
        http=partial(BoundedConnection, limit=connection_limit(concurrency)),  # type: ignore[arg-type]
        backlog=BACKLOG,
        loop="asyncio",  # the client needs the loop's add_reader, which all loops have; no other loop is needed
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=DRAIN_S,
    )
    uvicorn.Server(config).run(sockets=[opened])


MOST_MEGAPIXELS = 50.0  # of an image for a thumbnail; the daemon has its own limit


def gateway_application(settings: GatewaySettings) -> Starlette:
    """Return the gateway's ASGI application; it connects to the daemon at the first request that needs it."""
    client = AsyncClient(settings.endpoint, timeout_ms=settings.timeout_ms)
    limits = image.Limits(int(settings.max_body_mb * 1e6), int(MOST_MEGAPIXELS * 1e6))
    thumbnails = Thumbnails(settings.thumbnails, limits)
    catalogue = Catalogue(client)
    sender = Sender(client, catalogue, thumbnails)
    routes = [
        Route("/openapi.json", openapi_document),
        Route("/metrics", partial(answer_scrape, client)),
        Route("/classify", partial(answer_classify, sender), methods=["POST"]),
        *InferenceApi(client, catalogue, sender).routes(),
        *PageApi(client, thumbnails).routes(),
    ]
    return application(settings, routes, sender.close, client.close)


def application(settings: GatewaySettings, routes: Sequence[Route], *closing: Callable[[], None]) -> Starlette:
    """Return an ASGI application with these routes behind RequestLimits. closing: functions to call at its end."""

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        for close in closing:
            close()

    return Starlette(
        routes=list(routes),
        middleware=[Middleware(RequestLimits, settings)],
        exception_handlers={JetselError: error_response, HTTPException: _unknown_path},
        lifespan=lifespan,
    )


async def _unknown_path(request: Request, error: Exception) -> Response:
    """Return the reply to a request for an unknown path or method, as JSON like every other error."""
    assert isinstance(error, HTTPException)
    words = f"{request.method} {request.url.path}: {error.detail}; /openapi.json lists all addresses"
    return JSONResponse(error_body(BadRequestError(words)), error.status_code, error.headers)
