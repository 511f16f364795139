"""`jetsel gateway`: HTTP beside the daemon, in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jetsel.base.errors import ConfigError, pip_install
from jetsel.cli.options import Endpoint


def gateway(
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Address to listen at.")] = "127.0.0.1:8000",
    endpoint: Endpoint = None,
    token_file: Annotated[
        Path | None, typer.Option(help="File with the token that requests must send: Authorization: Bearer TOKEN.")
    ] = None,
    behind_proxy: Annotated[
        bool,
        typer.Option(
            "--behind-proxy", help="Rely on a reverse proxy for access control: listen at any address, accept any Host."
        ),
    ] = False,
    max_body_mb: Annotated[float, typer.Option(min=0.001, max=1024, help="Largest request body, in MB.")] = 64.0,
    concurrency: Annotated[
        int, typer.Option(min=1, max=10_000, help="Maximum number of concurrent requests, open pages included.")
    ] = 256,
    timeout_ms: Annotated[float, typer.Option(min=1, help="Time limit of one image, retries included.")] = 30_000.0,
    thumbnails: Annotated[
        int, typer.Option(min=0, max=1000, help="Number of thumbnails kept in memory for the page.")
    ] = 0,
    review: Annotated[
        Path | None, typer.Option(help="Folder of `jetsel watch --save` whose images are reviewed at /review.")
    ] = None,
    reviewed: Annotated[
        Path | None, typer.Option(help="Folder for reviewed images (default: the other's name with -reviewed).")
    ] = None,
) -> None:
    """Serve HTTP: Open Inference Protocol v2, POST /classify, /metrics for Prometheus, and a page.

    The gateway is a client of the daemon; either can be started, stopped or restarted without the other. It needs pip
    install 'jetsel[gateway]'.
    """
    try:
        from jetsel.base.notify import Notifier
        from jetsel.gateway.server import application, listening, run
        from jetsel.gateway.settings import GatewaySettings, address, check_reach, read_token
    except ModuleNotFoundError as missing:
        repair = (
            "this Python was built without OpenSSL: use another" if missing.name == "_ssl" else pip_install("gateway")
        )
        raise ConfigError(f"jetsel gateway needs {missing.name}: {repair}") from None

    host, port = address(listen)
    token = None if token_file is None else read_token(token_file)
    check_reach(host, token=token, behind_proxy=behind_proxy)
    served = application(
        GatewaySettings(
            endpoint, token, max_body_mb, concurrency, timeout_ms, thumbnails, behind_proxy, review, reviewed
        )
    )
    opened = listening(host, port)
    address_of_it = f"http://{listen.rpartition(':')[0]}:{opened.getsockname()[1]}/"
    typer.echo(address_of_it, err=False)
    if review is not None:
        typer.echo(f"jetsel: review the images of {review} at {address_of_it}review", err=True)
    Notifier.from_environment().ready(address_of_it)
    run(served, concurrency, opened)
