"""`jetsel edge`: what the way to the edge takes, how accurate its models are, and what may reach it."""

from __future__ import annotations

import typer

from jetsel.cli.edge.measure import measure
from jetsel.cli.edge.open_network import open_network
from jetsel.cli.edge.trace import trace
from jetsel.cli.edge.triton_repository import triton_repository

edge = typer.Typer(no_args_is_help=True, help="The edge server that [edge] names.")
edge.command()(trace)
edge.command()(measure)
edge.command()(open_network)
edge.command()(triton_repository)
