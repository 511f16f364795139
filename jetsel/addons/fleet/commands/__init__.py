"""The commands `fleet` for a manager, `repo` for the repository of models, and `agent` for a device."""

from __future__ import annotations

import typer

from jetsel.addons.fleet.commands.agent import agent
from jetsel.addons.fleet.commands.manager import plan, report, status
from jetsel.addons.fleet.commands.repo import repo
from jetsel.addons.fleet.commands.roll_out import roll_out, stop

fleet = typer.Typer(no_args_is_help=True, help="Plans for many devices, and their state. See docs/fleet.md.")
fleet.command()(status)
fleet.command()(plan)
fleet.command("roll-out")(roll_out)
fleet.command()(stop)
fleet.command()(report)


def add_to(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.add_typer(fleet, name="fleet", rich_help_panel="Fleet")
    app.add_typer(repo, name="repo", rich_help_panel="Fleet")
    app.add_typer(agent, name="agent", rich_help_panel="Fleet")
