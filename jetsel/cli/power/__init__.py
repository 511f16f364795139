"""`jetsel power`: what the board's sensors say now, a recording of it, and its idle power."""

from __future__ import annotations

import typer

from jetsel.cli.power.calibrate import calibrate
from jetsel.cli.power.record import record
from jetsel.cli.power.show import show

power = typer.Typer(invoke_without_command=True, help=show.__doc__)
power.callback()(show)
power.command()(record)
power.command()(calibrate)
