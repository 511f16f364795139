"""`jetsel power`: read the board's power sensors, and measure its idle power."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jetsel.cli.options import ConfigFile, Json, emit

if TYPE_CHECKING:
    from jetsel.base.config import Power
    from jetsel.power.finding import FoundRails, PowerReading

Sysfs = Annotated[
    Path | None,
    typer.Option(metavar="ROOT", help="Folder to read instead of /sys: a copy of a board's tree, or a simulated one."),
]


def section(config: Path | None, sysfs: Path | None) -> Power:
    """Return the [power] section of the configuration, with --sysfs applied; raises ConfigError."""
    import msgspec

    from jetsel.site import config_file

    power = config_file.locate_and_read(config).power
    return power if sysfs is None else msgspec.structs.replace(power, sysfs=str(sysfs.absolute()))


def sensors(power: Power) -> FoundRails:
    """Open the board's power sensors, called rails. Raises PowerError if there is none, ConfigError for a wrong key."""
    from jetsel.base.errors import PowerError
    from jetsel.power.finding import check_board, find_rails

    check_board(power)
    rails = find_rails(power)
    if not rails.rails:
        raise PowerError("; ".join([str(rails.reason), *(f"{rail.name}: {rail.reason}" for rail in rails.dropped)]))
    return rails


def show(ctx: typer.Context, json: Json = False, sysfs: Sysfs = None, config: ConfigFile = None) -> None:
    """Show the current readings of the board's power sensors: each rail, and the total with the rails that it adds up.

    To watch them: watch jetsel power.
    """
    if ctx.invoked_subcommand is not None:
        return
    from jetsel.power.finding import read_power

    rails = sensors(section(config, sysfs))
    try:
        snapshot = read_power(rails)
    finally:
        rails.close()
    emit(snapshot, json, lambda: _show_rails(snapshot))


def _show_rails(snapshot: PowerReading) -> None:
    """Print a table with a row for each rail and one for the total, and which rails are not read."""
    from jetsel.cli.terminal import console, table

    rows = table("rail", ">watts", ">volts", ">amps")
    rows.title = snapshot.board or "a board that is not in the table"
    for rail in snapshot.rails:
        volts, amps = ("-" if value is None else f"{value:.3f}" for value in (rail.volts, rail.amps))
        rows.add_row(rail.name, f"{rail.watts:.3f}", volts, amps)
    if snapshot.total_w is not None:
        rows.add_row("total", f"{snapshot.total_w:.3f}", "-", "-", style="bold")
    total = f"the total is {' + '.join(snapshot.total_of)}" if snapshot.total_w is not None else "no total"
    out = console()
    out.print(rows)
    for line in (total, *(f"not read: {rail.name}: {rail.reason}" for rail in snapshot.dropped)):
        out.print(line)


def calibrate(
    seconds: Annotated[float, typer.Option(min=15, max=3600, help="Seconds to measure; longer is more exact.")] = 60.0,
    with_load: Annotated[
        bool,
        typer.Option("--with-load", help="Measure even if other programs run. Their power then counts as idle power."),
    ] = False,
    json: Json = False,
    sysfs: Sysfs = None,
    config: ConfigFile = None,
) -> None:
    """Measure idle power, and save it for the board's current power mode.

    Do not use the board during the measurement: send no requests, and run no other programs. A daemon may run if no
    client sends requests; its power then counts as idle power. Measure again after you change the power mode, the
    clocks or the connected devices. Exit status: 1 if nothing was saved, with the reason.
    """
    from jetsel.base.config import power_folder
    from jetsel.power.idle import measure_here, save_idle

    power = section(config, sysfs)
    sensors(power).close()  # reports faults before the measurement starts
    if not json:
        typer.echo(f"measuring for {seconds:.0f} s: do not use the board")
    idle = measure_here(power, seconds, with_load)
    path = save_idle(idle, power_folder(power))
    lines = (
        f"idle power: {idle.mean_w:.3f} W ± {idle.half_width_w * 1e3:.1f} mW (95 %)",
        f"samples: {idle.samples} of {' + '.join(idle.rails)} in {idle.seconds:.0f} s",
        f"drift: {idle.drift_w_per_min * 1e3:+.1f} mW a minute",
        f"board: {idle.board or 'unknown'}; power mode: {idle.power_mode or 'unknown'}",
        f"saved in {path}; a running daemon uses it without a restart",
    )
    emit(idle, json, "\n".join(lines))


power = typer.Typer(invoke_without_command=True, help=show.__doc__)
power.callback()(show)
power.command()(calibrate)
