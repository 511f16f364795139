"""`jetsel models`: see, add, check and remove the models on this device; one file for each subcommand."""

from __future__ import annotations

import typer

from jetsel.cli.models.add import add
from jetsel.cli.models.build import build
from jetsel.cli.models.listing import list_models
from jetsel.cli.models.optimize import optimize
from jetsel.cli.models.pull import pull
from jetsel.cli.models.remove import remove
from jetsel.cli.models.set_input import set_input
from jetsel.cli.models.train_head import train_head

models = typer.Typer(no_args_is_help=True, help="See and change the models on this device.")
models.command("list")(list_models)
models.command()(add)
models.command()(pull)
models.command()(remove)
models.command("set")(set_input)
models.command()(build)
models.command()(train_head)
models.command()(optimize)
