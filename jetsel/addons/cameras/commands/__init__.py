"""The commands of the cameras: `jetsel watch` and `jetsel review`."""

from __future__ import annotations

import typer

from jetsel.addons.cameras.commands.review import review
from jetsel.addons.cameras.commands.watch import run


def add_to(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("watch", rich_help_panel="Cameras")(run)
    app.command(rich_help_panel="Cameras")(review)
