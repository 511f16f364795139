"""`jetsel fleet`: the manager of many devices, over the repository that they read and write to."""

from __future__ import annotations

import typer

from jetsel.cli.fleet.plan import plan
from jetsel.cli.fleet.roll_out import roll_out, stop
from jetsel.cli.fleet.status import report, status

fleet = typer.Typer(no_args_is_help=True, help="Plans for many devices, and their state. See docs/fleet.md.")
fleet.command()(status)
fleet.command()(plan)
fleet.command("roll-out")(roll_out)
fleet.command()(stop)
fleet.command()(report)
