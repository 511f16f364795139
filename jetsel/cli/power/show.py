"""`jetsel power`: what each rail reads now, and the total of those that make it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from jetsel.cli.options import ConfigFile, Json, print_json
from jetsel.cli.power.options import Replay, Sysfs

if TYPE_CHECKING:
    from rich.table import Table

    from jetsel.power.finding import Snapshot


def show(
    ctx: typer.Context, json: Json = False, sysfs: Sysfs = None, replay: Replay = None, config: ConfigFile = None
) -> None:
    """Show what the board's power sensors read now: each rail, and the total of those that make it.

    To watch them: watch jetsel power.
    """
    if ctx.invoked_subcommand is not None:
        return
    from jetsel.cli.power.options import section, sensors
    from jetsel.cli.terminal import console
    from jetsel.power.finding import take

    found = sensors(section(config, sysfs, replay))
    try:
        seen = take(found)
    finally:
        found.close()
    if json:
        print_json(seen)
        return
    out = console()
    out.print(rails_table(seen))
    total = f"the total is {' + '.join(seen.total_of)}" if seen.total_w is not None else "no total"
    for line in (total, *(f"not read: {rail.name}: {rail.reason}" for rail in seen.dropped)):
        out.print(line)


def rails_table(seen: Snapshot) -> Table:
    """Return a row for each rail, and one for the total where it is known."""
    from jetsel.cli.terminal import table

    shown = table("rail", ">watts", ">volts", ">amps")
    shown.title = seen.board or "a board that is not in the table"
    for rail in seen.rails:
        volts, amps = ("-" if value is None else f"{value:.3f}" for value in (rail.volts, rail.amps))
        shown.add_row(rail.name, f"{rail.watts:.3f}", volts, amps)
    if seen.total_w is not None:
        shown.add_row("total", f"{seen.total_w:.3f}", "-", "-", style="bold")
    return shown
