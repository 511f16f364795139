"""`jetsel edge`: how long the way to the edge server takes, and how accurate its models are."""

from __future__ import annotations

import typer

from jetsel.cli.edge.measure import measure
from jetsel.cli.edge.trace import trace

edge = typer.Typer(no_args_is_help=True, help="Commands for the configured edge server.")
edge.command()(trace)
edge.command()(measure)
