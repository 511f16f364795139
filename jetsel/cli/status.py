"""`jetsel status` and `jetsel reload`: see how a running daemon fares, and have it read its files again."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Annotated

import typer

from jetsel.cli.faring import (
    duration,
    escalated,
    escalations_line,
    host_lines,
    outcomes,
    queue_line,
    reload_line,
    stages_table,
)
from jetsel.cli.options import Endpoint, Json, Key, ServerKey, TimeoutMs

LOOK_S = 0.1  # between two looks whether the daemon is still there
SHOWN_OF_HASH = 12  # hexadecimal digits, as git shows of its own

if TYPE_CHECKING:
    from rich.table import Table

    from jetsel.wire import FamilyStatus, StatusReply


def status(
    json: Json = False,
    endpoint: Endpoint = None,
    key: Key = None,
    server_key: ServerKey = None,
    timeout_ms: TimeoutMs = 5000,
) -> None:
    """Show what the daemon serves and how it fares."""
    from jetsel.cli.power_status import energy_tables, power_lines
    from jetsel.cli.terminal import console
    from jetsel.client import Client
    from jetsel.wire import encode

    with Client(endpoint, timeout_ms=timeout_ms, key=key, server_key=server_key) as client:
        reply = client.status()
    if json:
        typer.echo(encode(reply).decode())
        return
    out = console()
    for line in summary(reply):
        out.print(line, markup=False)
    stages = stages_table(reply.stages_ms, "where the last {} spent their time, in ms")
    if stages is not None:
        out.print(stages)
    for family in reply.families:
        out.print(models_table(family))
        for line in about(family):
            out.print(line, markup=False)
    if reply.power is not None:
        for line in power_lines(reply.power):
            out.print(line, markup=False)
        for shown in energy_tables(reply.power):
            out.print(shown)
    for line in reply.broken:
        out.print(f"left out: {line}", markup=False, style="red")


def reload(
    endpoint: Endpoint = None,
    key: Key = None,
    server_key: ServerKey = None,
    timeout_ms: TimeoutMs = 60_000,
    daemon_pid: Annotated[
        int | None,
        typer.Option(min=2, metavar="PID", help="Give up when this process has ended: for systemd's ExecReload=."),
    ] = None,
) -> None:
    """Have the daemon read its configuration, models and calibrations again.

    Only root, the daemon's own user and the configured admin group may; over tcp, who has an admin's key. Where
    something is wrong with the new files, the daemon goes on with what it has, and says why.
    """
    from jetsel.client import Client

    if daemon_pid is not None:
        threading.Thread(target=_end_with, args=(daemon_pid,), daemon=True).start()
    with Client(endpoint, timeout_ms=timeout_ms, key=key, server_key=server_key) as client:
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


def summary(reply: StatusReply) -> list[str]:
    """Return what is to be said of the daemon as a whole."""
    memory = f", {reply.resident_mb:.0f} MB resident" if reply.resident_mb is not None else ""
    lost = f"; {reply.lost_replies:,} replies lost to clients that do not read" if reply.lost_replies else ""
    state = f"{reply.state} ({reply.progress})" if reply.progress else reply.state
    reloads = reload_line(reply)
    return [
        f"jetsel {reply.version} is {state}: process {reply.pid}, up {duration(reply.uptime_s)}{memory}",
        f"listens on {', '.join(reply.endpoints)}",
        f"requests: {outcomes(reply.requests)}{lost}",
        queue_line(reply),
        *([] if reloads is None else [reloads]),
        *(line for host in reply.hosts for line in host_lines(host)),
    ]


def models_table(family: FamilyStatus) -> Table:
    """Return the family's models, cheapest first, with what their runs took and how often another had to follow."""
    from rich.markup import escape

    from jetsel.cli.terminal import milliseconds, table

    shown = table("model", "version", "runs on", "state", ">runs", ">escalated", ">p50", ">p95", ">p99")
    shown.title = f"family {escape(family.name)}: {family.classes} classes; times of recent runs in ms"
    for model in family.models:
        state = model.state if model.reason is None else f"{model.state}: {model.reason}"
        times = (milliseconds(ms) for ms in (model.p50_ms, model.p95_ms, model.p99_ms))
        what = (escape(model.name), escape(model.version), escape(model.backend), escape(state))
        shown.add_row(*what, f"{model.runs:,}", escalated(model), *times)
    return shown


def about(family: FamilyStatus) -> list[str]:
    """Return what decides in this family."""
    defaults = set(family.default_policy.values())
    shown = (
        defaults.pop() if len(defaults) == 1 else ", ".join(f"{v} for {k}" for k, v in family.default_policy.items())
    )
    escalations = escalations_line(family)
    return [
        *([] if escalations is None else [escalations]),
        f"policy: {shown} ({family.because})",
        f"a request may also name: {', '.join(family.policies)}",
        f"in doubt: {family.fallback or 'refuse'}; calibration: {family.calibration or 'none'}{_known(family)}",
    ]


def _known(family: FamilyStatus) -> str:
    """What is known of the calibration beside its name: what it saves, and what tells it from others."""
    objective = [] if family.objective is None else [f"to save {family.objective}"]
    identity = family.calibration_identity
    known = objective + ([] if identity is None else [f"sha256 {identity.sha256[:SHOWN_OF_HASH]}"])
    return f" ({', '.join(known)})" if known else ""
