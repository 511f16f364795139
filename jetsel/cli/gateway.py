"""`jetsel gateway`: an HTTP server in front of the daemon, and the code that all commands with an HTTP server share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jetsel.base.errors import ConfigError, pip_install
from jetsel.cli.options import Endpoint

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from jetsel.gateway.settings import GatewaySettings

Listen = Annotated[str, typer.Option(metavar="HOST:PORT", help="Address to listen at.")]
TokenFile = Annotated[
    Path | None, typer.Option(help="File with the token that requests must send: Authorization: Bearer TOKEN.")
]
BehindProxy = Annotated[
    bool,
    typer.Option(
        "--behind-proxy", help="Rely on a reverse proxy for access control: listen at any address, accept any Host."
    ),
]
ServedAtOnce = Annotated[
    int,
    typer.Option(
        "--concurrency", min=1, max=10_000, help="Maximum number of concurrent requests, open pages included."
    ),
]


def missing_library(command: str, missing: ModuleNotFoundError) -> ConfigError:
    """Return the error for a library that a command needs and that is not installed, with the command to install it."""
    if missing.name == "_ssl":
        return ConfigError(f"{command} needs _ssl: this Python was built without OpenSSL: use another")
    return ConfigError(f"{command} needs {missing.name}: {pip_install('gateway')}")


def serve(
    listen: str, token_file: Path | None, settings: GatewaySettings, application: Callable[[GatewaySettings], Starlette]
) -> None:
    """Serve an application until SIGINT or SIGTERM, and print its address once it listens; raises ConfigError.

    settings: without the token, which is read from its file. application: makes the ASGI application from the settings.
    """
    from jetsel.base.notify import Notifier
    from jetsel.gateway.server import open_listener, run
    from jetsel.gateway.settings import parse_address, read_token, require_authentication

    host, port = parse_address(listen)
    settings = replace(settings, token=None if token_file is None else read_token(token_file))
    require_authentication(host, token=settings.token, behind_proxy=settings.behind_proxy)
    served = application(settings)
    opened = open_listener(host, port)
    url = f"http://{listen.rpartition(':')[0]}:{opened.getsockname()[1]}/"
    typer.echo(url)
    Notifier.from_environment().ready(url)
    run(served, settings.concurrency, opened)


def gateway(
    listen: Listen = "127.0.0.1:8000",
    endpoint: Endpoint = None,
    token_file: TokenFile = None,
    behind_proxy: BehindProxy = False,
    max_body_mb: Annotated[float, typer.Option(min=0.001, max=1024, help="Largest request body, in MB.")] = 64.0,
    concurrency: ServedAtOnce = 256,
    timeout_ms: Annotated[float, typer.Option(min=1, help="Time limit of one image, retries included.")] = 30_000.0,
    thumbnails: Annotated[
        int, typer.Option(min=0, max=1000, help="Number of thumbnails kept in memory for the page.")
    ] = 0,
) -> None:
    """Serve HTTP: Open Inference Protocol v2, POST /classify, /metrics for Prometheus, and a page.

    The gateway is a client of the daemon; either can be started, stopped or restarted without the other. It needs pip
    install 'jetsel[gateway]'.
    """
    try:
        from jetsel.gateway.server import gateway_application
        from jetsel.gateway.settings import GatewaySettings
    except ModuleNotFoundError as missing:
        raise missing_library("jetsel gateway", missing) from None

    settings = GatewaySettings(endpoint, None, max_body_mb, concurrency, timeout_ms, thumbnails, behind_proxy)
    serve(listen, token_file, settings, gateway_application)
