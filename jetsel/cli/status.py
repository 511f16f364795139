"""`jetsel status` and `jetsel reload`: see how a running daemon fares, and have it read its files again."""

from __future__ import annotations

import os
import threading
import time
from typing import Annotated

import typer

from jetsel.cli.options import Endpoint, Json, TimeoutMs

LOOK_S = 0.1  # between two looks whether the daemon is still there


def status(
    json: Json = False,
    endpoint: Endpoint = None,
    timeout_ms: TimeoutMs = 5000,
) -> None:
    """Show what the daemon serves and how it fares."""
    from jetsel.cli.power_status import energy_tables, power_lines
    from jetsel.cli.status_text import family_lines, general_lines, headline, models_table, stages_table
    from jetsel.cli.terminal import console
    from jetsel.client import Client
    from jetsel.wire import encode

    with Client(endpoint, timeout_ms=timeout_ms) as client:
        reply = client.status()
    if json:
        typer.echo(encode(reply).decode())
        return
    out = console()
    shown: list[object] = [headline(reply), f"listens on {', '.join(reply.endpoints)}", *general_lines(reply)]
    shown.append(stages_table(reply.stages_ms))
    for family in reply.families:
        shown += [models_table(family), *family_lines(family)]
    if reply.power is not None:
        shown += [*power_lines(reply.power), *energy_tables(reply.power)]
    for part in shown:
        if part is not None:
            out.print(part, markup=False, soft_wrap=isinstance(part, str))
    for line in reply.broken:
        out.print(f"left out: {line}", markup=False, style="red", soft_wrap=True)


def reload(
    endpoint: Endpoint = None,
    timeout_ms: TimeoutMs = 60_000,
    daemon_pid: Annotated[
        int | None,
        typer.Option(min=2, metavar="PID", help="Give up when this process has ended: for systemd's ExecReload=."),
    ] = None,
) -> None:
    """Have the daemon read its configuration, models and calibrations again.

    Only root, the daemon's own user and the configured admin group may. Where
    something is wrong with the new files, the daemon goes on with what it has, and says why.
    """
    from jetsel.client import Client

    if daemon_pid is not None:
        threading.Thread(target=_end_with, args=(daemon_pid,), daemon=True).start()
    with Client(endpoint, timeout_ms=timeout_ms) as client:
        changed = client.reload().changed
    typer.echo("reloaded; " + (f"changed: {', '.join(changed)}" if changed else "nothing is different"))


def _end_with(process: int) -> None:
    """End this command once that process is gone.

    Where the daemon dies during ExecReload=, systemd starts the next one only when that command has ended; and a client
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
