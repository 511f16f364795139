"""`jetsel status`, `top` and `reload`: show the state of a running daemon, and reload its files."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from jetsel.base.errors import JetselError
from jetsel.cli.options import DaemonConfig, Endpoint, Json, TimeoutMs, emit
from jetsel.site.config_file import endpoint_of

if TYPE_CHECKING:
    from rich.console import Group

    from jetsel.wire import StatusReply


def top(
    interval: Annotated[float, typer.Option("--interval", "-i", min=0.1, help="Seconds between two updates.")] = 2.0,
    count: Annotated[int | None, typer.Option("--count", "-n", min=1, help="Updates to show (default: all).")] = None,
    config: DaemonConfig = None,
    endpoint: Endpoint = None,
) -> None:
    """Watch the daemon: requests per second, where their time goes, the queue, the models and the power.

    In a terminal it fills the screen until Ctrl-C. Without a terminal, each update is printed as a block of text. If
    the daemon stops, the command waits for it.
    """
    from jetsel.client import Client

    client = Client(endpoint_of(endpoint, config), timeout_ms=5000.0, retry=False)  # a busy daemon replies late
    before, now, gone = None, client.status(), ""
    with contextlib.suppress(KeyboardInterrupt), _page_output() as show:
        seen_at = datetime.now()
        for number in itertools.count(1):
            show(page(before, now, f"{seen_at:%H:%M:%S}, every {interval:g} s", gone))
            if number == count:
                return
            time.sleep(interval)
            try:
                before, now, gone, seen_at = now, client.status(), "", datetime.now()
            except JetselError as error:
                gone = str(error)


@contextlib.contextmanager
def _page_output() -> Iterator[Callable[[Group], None]]:
    """Yield a function that shows a page: on the whole screen of a terminal, or else as a block of text."""
    from rich.live import Live

    from jetsel.cli.terminal import console

    out = console()
    if not out.is_terminal or out.is_dumb_terminal:
        yield out.print
        return
    for number in (signal.SIGTERM, signal.SIGHUP):  # raise an exception, so that the terminal is restored
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    with Live(console=out, screen=True, auto_refresh=False, vertical_overflow="ellipsis") as live:
        yield lambda shown: live.update(shown, refresh=True)


def page(before: StatusReply | None, now: StatusReply, when: str, gone: str = "") -> Group:
    """Return one page of `jetsel top`: the status `now`, with rates since the status `before`; None: since the start.

    when: time of the status, for the first line. gone: why the daemon does not reply any more, empty if it does.
    """
    from rich.console import Group
    from rich.text import Text

    from jetsel.cli.status_text import details, headline

    if before is not None and before.instance != now.instance:
        before = None  # another daemon: show the load since its start
    lines = [Text(f"{headline(now)}; {when}", "bold")]
    lines += [Text(f"the daemon does not reply; this is its last status: {gone}", "bold red")] if gone else []
    return Group(*lines, *map(Text, details(now, before)))


CHECK_INTERVAL_S = 0.1  # between two checks whether the daemon still runs


def status(
    json: Json = False, config: DaemonConfig = None, endpoint: Endpoint = None, timeout_ms: TimeoutMs = 5000
) -> None:
    """Show what the daemon serves, and its state."""
    from jetsel.client import Client

    with Client(endpoint_of(endpoint, config), timeout_ms=timeout_ms) as client:
        reply = client.status()
    emit(reply, json, lambda: _show(reply))


def _show(reply: StatusReply) -> None:
    from jetsel.cli.status_text import details, headline
    from jetsel.cli.terminal import console

    out = console()
    for line in (headline(reply), *details(reply)):
        out.print(line)


def reload(
    config: DaemonConfig = None,
    endpoint: Endpoint = None,
    timeout_ms: TimeoutMs = 60_000,
    daemon_pid: Annotated[
        int | None,
        typer.Option(
            min=2, metavar="PID", help="Process to watch: give up when it has ended. For systemd's ExecReload=."
        ),
    ] = None,
) -> None:
    """Make the daemon read its configuration, models and calibrations again.

    Only root, the daemon's own user and the configured admin group may do this. If the new files contain an error, the
    daemon continues with the old ones and reports the error.
    """
    from jetsel.client import Client

    if daemon_pid is not None:
        threading.Thread(target=_exit_with_process, args=(daemon_pid,), daemon=True).start()
    with Client(endpoint_of(endpoint, config), timeout_ms=timeout_ms) as client:
        changed = client.reload().changed
    typer.echo("reloaded; " + (f"changed: {', '.join(changed)}" if changed else "nothing changed"))


def _exit_with_process(pid: int) -> None:
    """Wait until the process with this id has ended, and then end this process too.

    If the daemon dies during ExecReload=, this command would wait on systemd's socket for the next daemon, and systemd
    would wait for this command before it starts the next daemon.
    """
    while True:
        try:
            os.kill(pid, 0)  # sends no signal, but checks that it exists
        except ProcessLookupError:
            break
        except PermissionError:
            pass  # the process runs as another user
        time.sleep(CHECK_INTERVAL_S)
    typer.echo("jetsel: the daemon ended during the reload; the next one reads everything as it starts", err=True)
    os._exit(1)  # works in any thread, and does not wait for the client
