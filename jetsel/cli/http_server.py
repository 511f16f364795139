"""What commands that serve HTTP share: where they listen, who may ask, and the start of the server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jetsel.base.errors import ConfigError, pip_install

if TYPE_CHECKING:
    from starlette.applications import Starlette

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


def needs(command: str, missing: ModuleNotFoundError) -> ConfigError:
    """Return the error for a library that a server needs and that is not installed."""
    if missing.name == "_ssl":
        return ConfigError(f"{command} needs _ssl: this Python was built without OpenSSL: use another")
    return ConfigError(f"{command} needs {missing.name}: {pip_install('gateway')}")


def serve(
    listen: str,
    token_file: Path | None,
    concurrency: int,
    application: Callable[[str | None], Starlette],
    *,
    behind_proxy: bool,
) -> None:
    """Serve an application until SIGINT or SIGTERM, and print its address once it listens; raises ConfigError.

    application: makes it, given the token that requests must bear, None for none.
    """
    from jetsel.base.notify import Notifier
    from jetsel.gateway.server import listening, run
    from jetsel.gateway.settings import address, check_reach, read_token

    host, port = address(listen)
    token = None if token_file is None else read_token(token_file)
    check_reach(host, token=token, behind_proxy=behind_proxy)
    served = application(token)
    opened = listening(host, port)
    url = f"http://{listen.rpartition(':')[0]}:{opened.getsockname()[1]}/"
    typer.echo(url)
    Notifier.from_environment().ready(url)
    run(served, concurrency, opened)
