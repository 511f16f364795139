"""The options that the power commands share, and the [power] section that they make of them and of the file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from jetsel.config import Power
    from jetsel.power.finding import Found

Sysfs = Annotated[
    Path | None,
    typer.Option(metavar="ROOT", help="Where to read in place of /sys: a copy of a board's tree, or a simulated one."),
]
Replay = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Play this recording of `jetsel power record` in place of reading sensors."),
]


def section(config: Path | None, sysfs: Path | None, replay: Path | None = None) -> Power:
    """Return the file's [power] section, with what the options say in its place; raises ConfigError.

    A tree that is named is read, even where the file has a recording played.
    """
    import msgspec

    from jetsel.cli import settings

    power = settings.read(settings.locate(config)).power
    if sysfs is not None:
        power = msgspec.structs.replace(power, sysfs=str(sysfs.absolute()), replay=None)
    return power if replay is None else msgspec.structs.replace(power, replay=str(replay.absolute()))


def sensors(power: Power) -> Found:
    """Return what can be read; raises PowerError where there is not one rail, ConfigError for a wrong [power] key."""
    from jetsel.power.finding import check, find_some

    check(power)
    return find_some(power)
