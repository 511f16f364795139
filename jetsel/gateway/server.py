"""`jetsel gateway` as a process: uvicorn on one address, until it is told to stop."""

from __future__ import annotations

import socket
from functools import partial

import uvicorn

from jetsel.base.errors import ConfigError
from jetsel.gateway.app import application
from jetsel.gateway.connections import BoundedConnection, most_connections
from jetsel.gateway.settings import Settings

BACKLOG = 128
DRAIN_S = 10  # requests that are under way may end


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens there; raises ConfigError with the repair where it cannot."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named, or asyncio leaves TCP_NODELAY off
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((host, port))
        opened.listen(BACKLOG)
    except OSError as error:
        opened.close()
        raise ConfigError(f"--listen {host}:{port}: {error.strerror or error}: name another with --listen") from None
    return opened


def run(settings: Settings, opened: socket.socket) -> None:
    """Serve on this socket until SIGINT or SIGTERM."""
    config = uvicorn.Config(
        application(settings),
        http=partial(BoundedConnection, most=most_connections(settings.concurrency)),  # type: ignore[arg-type]
        backlog=BACKLOG,
        loop="asyncio",  # the client waits on its socket by the loop's add_reader, which all have; no other is needed
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=DRAIN_S,
    )
    uvicorn.Server(config).run(sockets=[opened])
