"""`jetsel power calibrate`: measure what the board takes at rest, which every energy deducts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jetsel.cli.options import ConfigFile, Json
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
    """Measure idle power, and what the measuring itself takes, and keep both for the board's power mode of now.

    Leave the board alone meanwhile: no requests, no other programs. A daemon may run, if nobody asks it anything: what
    it takes at rest belongs to idle power then. Measure again after a change of the power mode, of clocks or of what is
    connected. Exit status: 1 where nothing was kept, with the reason.
    """
    from msgspec.structs import replace

    from jetsel.cli.power.options import section, sensors
    from jetsel.cli.power.rest import Rest
    from jetsel.config import power_folder
    from jetsel.errors import PowerError
    from jetsel.power.idle import save
    from jetsel.power.idling import measure
    from jetsel.power.place import place
    from jetsel.power.sampling.sampler import Sampler
    from jetsel.power.stirring import stirred

    power = section(config, sysfs, replay)
    sensors(power).close()  # what is wrong with them is told before a minute has gone by
    sampler = Sampler(power)
    try:
        if not sampler.ready(60.0) or sampler.reason is not None:
            raise PowerError(
                f"power cannot be sampled: {sampler.reason or 'the sampler does not answer'}; see: jetsel doctor"
            )
        here = place(power)
        if not json:
            typer.echo(f"measuring {' + '.join(sampler.total_of)} for {seconds:.0f} s: leave the board alone")
        idle = measure(sampler, seconds, here, (lambda: None) if with_load else Rest(sampler).broken)
        period_ms = sampler.period_ms
    finally:
        sampler.stop()
    if period_ms is None:  # a quiet board's power may have stood still all the time
        if not json:
            typer.echo("making the power change, to see how often the sensor has a new value")
        period_ms = stirred(power)
    idle = replace(idle, update_period_ms=period_ms)
    path = save(idle, power_folder(power))
    if json:
        import msgspec

        typer.echo(msgspec.json.encode(idle).decode())
        return
    for line in told(idle):
        typer.echo(line)
    typer.echo(f"kept in {path}; a running daemon takes it up by itself")


def told(idle: Idle) -> list[str]:
    """Return what was measured, in words."""
    if idle.sampler_w is None:
        cost = f"too little to tell: under {idle.sampler_half_width_w * 1e3:.1f} mW"
    else:
        cost = f"{idle.sampler_w * 1e3:.1f} mW, give or take {idle.sampler_half_width_w * 1e3:.1f}"
    if idle.update_period_ms is None:
        period = "did not show, so short windows have no energy at first: calibrate again while the board works"
    else:
        period = f"{idle.update_period_ms:.3g} ms at most"
    return [
        f"idle power: {idle.mean_w:.3f} W, give or take {idle.half_width_w * 1e3:.1f} mW (95 %)",
        f"samples: {idle.samples} in {idle.seconds:.0f} s",
        f"drift: {idle.drift_w_per_min * 1e3:+.1f} mW a minute",
        f"the fast sampling itself takes {cost}",
        f"from one value of the sensor to the next: {period}",
        f"board: {idle.board or 'unknown'}; power mode: {idle.power_mode or 'unknown'}",
    ]
