"""`jetsel power calibrate`: measure what the board takes at rest, which every energy deducts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jetsel.cli.options import ConfigFile, Json, print_json
from jetsel.cli.power.options import Replay, Sysfs

if TYPE_CHECKING:
    from jetsel.power.idle import Idle


def calibrate(
    seconds: Annotated[float, typer.Option(min=15, max=3600, help="How long to measure; longer is more exact.")] = 60.0,
    with_load: Annotated[
        bool,
        typer.Option(
            "--with-load", help="Measure although other programs work: what they take counts as idle power from now on."
        ),
    ] = False,
    json: Json = False,
    sysfs: Sysfs = None,
    replay: Replay = None,
    config: ConfigFile = None,
) -> None:
    """Measure idle power, and keep it for the board's power mode of now.

    Leave the board alone meanwhile: no requests, no other programs. A daemon may run, if nobody asks it anything: what
    it takes at rest belongs to idle power then. Measure again after a change of the power mode, of clocks or of what is
    connected. Exit status: 1 where nothing was kept, with the reason.
    """
    from jetsel.cli.power.options import section, sensors
    from jetsel.config import power_folder
    from jetsel.power.idle import measure_here, save

    power = section(config, sysfs, replay)
    sensors(power).close()  # what is wrong with them is told before a minute has gone by
    if not json:
        typer.echo(f"measuring for {seconds:.0f} s: leave the board alone")
    idle = measure_here(power, seconds, with_load)
    path = save(idle, power_folder(power))
    if json:
        print_json(idle)
        return
    for line in idle_lines(idle):
        typer.echo(line)
    typer.echo(f"kept in {path}; a running daemon takes it up by itself")


def idle_lines(idle: Idle) -> list[str]:
    """Return what was measured, in words."""
    return [
        f"idle power: {idle.mean_w:.3f} W, give or take {idle.half_width_w * 1e3:.1f} mW (95 %)",
        f"samples: {idle.samples} of {' + '.join(idle.rails)} in {idle.seconds:.0f} s",
        f"drift: {idle.drift_w_per_min * 1e3:+.1f} mW a minute",
        f"board: {idle.board or 'unknown'}; power mode: {idle.power_mode or 'unknown'}",
    ]
