"""`jetsel status` and `jetsel reload`: see how a running daemon fares, and have it read its files again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from jetsel.cli.options import Endpoint, Json, TimeoutMs

if TYPE_CHECKING:
    from rich.table import Table

    from jetsel.wire import FamilyStatus, StatusReply


def status(json: Json = False, endpoint: Endpoint = None, timeout_ms: TimeoutMs = 5000) -> None:
    """Show what the daemon serves and how it fares."""
    from jetsel.cli.power_status import energy_tables, power_lines
    from jetsel.cli.terminal import console
    from jetsel.client import Client
    from jetsel.wire import encode

    with Client(endpoint, timeout_ms=timeout_ms) as client:
        reply = client.status()
    if json:
        typer.echo(encode(reply).decode())
        return
    out = console()
    for line in summary(reply):
        out.print(line, markup=False)
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


def reload(endpoint: Endpoint = None, timeout_ms: TimeoutMs = 60_000) -> None:
    """Have the daemon read its configuration, models and calibrations again.

    Only root, the daemon's own user and the configured admin group may. Where something is wrong with the new files,
    the daemon goes on with what it has, and says why.
    """
    from jetsel.client import Client

    with Client(endpoint, timeout_ms=timeout_ms) as client:
        changed = client.reload().changed
    typer.echo("reloaded; " + (f"changed: {', '.join(changed)}" if changed else "nothing is different"))


def summary(reply: StatusReply) -> list[str]:
    """Return what is to be said of the daemon as a whole."""
    memory = f", {reply.resident_mb:.0f} MB resident" if reply.resident_mb is not None else ""
    counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(reply.requests.items())) or "none yet"
    lost = f", {reply.lost_replies} replies lost to clients that do not read" if reply.lost_replies else ""
    waiting = f"{reply.in_queue} waiting ({reply.queued_bytes / 1e6:.1f} MB)"
    state = f"{reply.state} ({reply.progress})" if reply.progress else reply.state
    return [
        f"jetsel {reply.version} is {state}: process {reply.pid}, up {duration(reply.uptime_s)}{memory}",
        f"listens on {', '.join(reply.endpoints)}",
        f"requests: {counts}; {waiting}{lost}",
    ]


def models_table(family: FamilyStatus) -> Table:
    """Return the family's models, cheapest first, with what their runs took."""
    from rich.markup import escape

    from jetsel.cli.terminal import milliseconds, table

    shown = table("model", "version", "runs on", "state", ">runs", ">p50 ms", ">p95 ms")
    shown.title = f"family {escape(family.name)}: {family.classes} classes"
    for model in family.models:
        state = model.state if model.reason is None else f"{model.state}: {model.reason}"
        times = (milliseconds(model.p50_ms), milliseconds(model.p95_ms))
        what = (escape(model.name), escape(model.version), escape(model.backend), escape(state))
        shown.add_row(*what, str(model.runs), *times)
    return shown


def about(family: FamilyStatus) -> list[str]:
    """Return what decides in this family."""
    defaults = set(family.default_policy.values())
    shown = (
        defaults.pop() if len(defaults) == 1 else ", ".join(f"{v} for {k}" for k, v in family.default_policy.items())
    )
    return [
        f"policy: {shown} ({family.because})",
        f"a request may also name: {', '.join(family.policies)}",
        f"in doubt: {family.fallback or 'refuse'}; calibration: {family.calibration or 'none'}{_objective(family)}",
    ]


def _objective(family: FamilyStatus) -> str:
    return "" if family.objective is None else f" (to save {family.objective})"


def duration(seconds: float) -> str:
    """Return a time span in the two largest units that matter: 93784 s -> 1 d 2 h."""
    left = int(seconds)
    parts: list[str] = []
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or (unit == "s" and not parts):
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])
