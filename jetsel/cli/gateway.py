"""`jetsel gateway`: HTTP beside the daemon, in a process of its own."""

from __future__ import annotations

from typing import Annotated

import typer

from jetsel.cli.http_server import BehindProxy, Listen, ServedAtOnce, TokenFile, needs, serve
from jetsel.cli.options import Endpoint


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
        raise needs("jetsel gateway", missing) from None

    serve(
        listen,
        token_file,
        concurrency,
        lambda token: gateway_application(
            GatewaySettings(endpoint, token, max_body_mb, concurrency, timeout_ms, thumbnails, behind_proxy)
        ),
        behind_proxy=behind_proxy,
    )
