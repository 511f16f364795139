"""`jetsel top`: how a running daemon fares, live in a terminal, or as one block of text after another."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Annotated

import typer

from jetsel.cli.options import Endpoint, Key, ServerKey

if TYPE_CHECKING:
    from rich.console import Console

    from jetsel.cli.top.watching import Watch

LOOK_MS = 5000.0  # a daemon under load answers late


def top(
    interval: Annotated[
        float, typer.Option("--interval", "-i", min=0.1, max=3600, help="Seconds from one look to the next.")
    ] = 2.0,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, help="End after so many looks. Left out: go on.")
    ] = None,
    endpoint: Endpoint = None,
    key: Key = None,
    server_key: ServerKey = None,
) -> None:
    """Watch what the daemon does: requests a second, where their time goes, the queue, the models and the power.

    In a terminal it takes the screen until q or Ctrl-C. Where the output is no terminal, each look is printed as a
    block of text. A daemon that goes away is waited for.
    """
    from jetsel.cli.terminal import console
    from jetsel.cli.top.watching import Watch
    from jetsel.client import Client

    client = Client(endpoint, timeout_ms=LOOK_MS, retry=False, key=key, server_key=server_key)
    watch = Watch(client, interval)
    watch.start()
    out = console()
    with contextlib.suppress(KeyboardInterrupt):  # it is how one ends it, and no failure
        if out.is_terminal and not out.is_dumb_terminal:
            _live(watch, out, interval, count)
        else:
            _blocks(watch, out, interval, count)
    watch.stop()


def _live(watch: Watch, out: Console, interval_s: float, count: int | None) -> None:
    from rich.live import Live

    from jetsel.cli.top.keys import keys
    from jetsel.cli.top.page import page

    with keys(watch.bell) as typed, Live(console=out, screen=True, auto_refresh=False) as live:
        while True:
            seen = watch.seen
            live.update(page(seen, interval_s, out.width, out.height), refresh=True)
            if typed.wants_to_quit(interval_s) or (count is not None and seen.number >= count):
                return


def _blocks(watch: Watch, out: Console, interval_s: float, count: int | None) -> None:
    from jetsel.cli.top.keys import Keys
    from jetsel.cli.top.page import page

    waiting = Keys(watch.bell)
    while True:
        seen = watch.seen
        out.print(page(seen, interval_s, out.width))
        out.print()
        if count is not None and seen.number >= count:
            return
        while watch.seen is seen:
            waiting.wants_to_quit(interval_s)
