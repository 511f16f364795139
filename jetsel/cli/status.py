"""`jetsel status` and `jetsel reload`: see the state of a running daemon, and have it read its files again."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Annotated

import typer

from jetsel.cli.options import DaemonConfig, Endpoint, Json, TimeoutMs, emit
from jetsel.site.config_file import endpoint_of

if TYPE_CHECKING:
    from jetsel.wire import StatusReply

LOOK_S = 0.1  # between two looks whether the daemon is still there


def status(
    json: Json = False,
    config: DaemonConfig = None,
    endpoint: Endpoint = None,
    timeout_ms: TimeoutMs = 5000,
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
    for part in (headline(reply), *details(reply)):
        out.print(part)


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
        threading.Thread(target=_end_with, args=(daemon_pid,), daemon=True).start()
    with Client(endpoint_of(endpoint, config), timeout_ms=timeout_ms) as client:
        changed = client.reload().changed
    typer.echo("reloaded; " + (f"changed: {', '.join(changed)}" if changed else "nothing changed"))


def _end_with(process: int) -> None:
    """End this command once that process is gone.

    If the daemon dies during ExecReload=, systemd starts the next one only when that command has ended; and a client
    would wait for the next one, in the socket that systemd holds.
    """
    while True:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            break
        except PermissionError:
            pass  # it is there, and somebody else's
        time.sleep(LOOK_S)
    typer.echo("jetsel: the daemon ended during the reload; the next one reads everything as it starts", err=True)
    os._exit(1)  # from any thread, and without the client's goodbye
