"""`jetsel watch`: cameras, and what is measured for them; one file for each subcommand."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from jetsel.cli.watch.fit_gate import fit_gate
from jetsel.cli.watch.run import run

RUN = "run"


class SourceOrCommand(TyperGroup):
    """A group whose first argument may be a SOURCE: what names no subcommand is for `run`, which is not written."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Have `run` read the arguments unless they begin with another subcommand."""
        others = self.commands.keys() - {RUN}
        return super().parse_args(ctx, args if args and args[0] in others else [RUN, *args])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Leave the name of `run` out of its usage line, too."""
        name, command, rest = super().resolve_command(ctx, args)
        return "" if name == RUN else name, command, rest


watch = typer.Typer(cls=SourceOrCommand, help="Watch cameras, and report when their labels change.")
watch.command(RUN, hidden=True)(run)
watch.command("fit-gate")(fit_gate)
