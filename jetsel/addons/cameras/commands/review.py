"""`jetsel review`: a page to sort the images that `jetsel watch --save` kept into their classes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from jetsel.cli.gateway import BehindProxy, Listen, ServedAtOnce, TokenFile, missing_library, serve
from jetsel.cli.options import Endpoint


def review(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of `jetsel watch --save`.")],
    reviewed: Annotated[
        Path | None, typer.Option(help="Folder for reviewed images (default: FOLDER with -reviewed).")
    ] = None,
    listen: Listen = "127.0.0.1:8001",
    endpoint: Endpoint = None,
    token_file: TokenFile = None,
    behind_proxy: BehindProxy = False,
    concurrency: ServedAtOnce = 32,
    timeout_ms: Annotated[float, typer.Option(min=1, help="Time limit of a suggestion.")] = 30_000.0,
) -> None:
    """Serve a page that shows saved images one by one; each moves to the folder of its class, or is put aside.

    The reviewed folder is one that `jetsel calibrate` and `jetsel models train-head` take. The daemon suggests classes
    if it runs. It needs pip install 'jetsel[gateway]'.
    """
    try:
        from jetsel.addons.cameras.review_api import review_application
        from jetsel.gateway.settings import GatewaySettings
    except ModuleNotFoundError as missing:
        raise missing_library("jetsel review", missing) from None

    settings = GatewaySettings(endpoint, concurrency=concurrency, timeout_ms=timeout_ms, behind_proxy=behind_proxy)
    serve(listen, token_file, settings, partial(review_application, folder, reviewed))
