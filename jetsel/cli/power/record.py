"""`jetsel power record`: write what every rail reads to a file that can be replayed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jetsel.cli.options import ConfigFile
from jetsel.cli.power.options import Replay, Sysfs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jetsel.power.finding import Found
    from jetsel.power.sensors.rail import Rail


def record(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The CSV file to write; it must not exist yet.")],
    seconds: Annotated[
        float | None, typer.Option(min=0.1, help="How long to record. Left out: until Ctrl-C, which keeps all of it.")
    ] = None,
    rate_hz: Annotated[float, typer.Option("--rate", min=0.1, max=1000, help="Rows a second.")] = 100.0,
    sysfs: Sysfs = None,
    replay: Replay = None,
    config: ConfigFile = None,
) -> None:
    """Record every rail to a file, for a look later or to be played with --replay or [power] replay."""
    import contextlib

    from jetsel.cli.power.options import section, sensors
    from jetsel.errors import PowerError
    from jetsel.power.trace import Writer

    found = sensors(section(config, sysfs, replay))
    rows = 0
    try:
        with out.open("x", encoding="utf-8", newline="") as file, contextlib.suppress(KeyboardInterrupt):
            names = [rail.name for rail in found.rails]
            board = found.board.name if found.board else None
            writer = Writer(file, board, names, found.total_of, [rail.resolution_w for rail in found.rails])
            for row in _rows(found, seconds, rate_hz):
                writer.row(*row)
                rows += 1
    except FileExistsError:
        raise PowerError(f"{out} is there already: name another file, or remove it") from None
    except OSError as fault:
        raise PowerError(f"{out}: {fault.strerror}: {rows} rows were written; name another file") from None
    finally:
        found.close()
    typer.echo(f"{out}: {rows} rows of {', '.join(names)}")


def _rows(found: Found, seconds: float | None, rate_hz: float) -> Iterator[tuple[float, list[float | None]]]:
    """Yield the time since the first row and every rail's watts, on a schedule that does not drift."""
    import time

    began = time.monotonic()
    first_s: float | None = None
    row = 0
    while seconds is None or row < round(seconds * rate_hz):
        time.sleep(max(0.0, began + row / rate_hz - time.monotonic()))
        now_s = time.monotonic()
        first_s = now_s if first_s is None else first_s
        yield now_s - first_s, [_watts(rail) for rail in found.rails]
        # Rows that could not be read in time are left out, never made up.
        row = max(row + 1, int((time.monotonic() - began) * rate_hz))


def _watts(rail: Rail) -> float | None:
    """What the rail reads now, None where it cannot be read."""
    from jetsel.power.sensors.rail import RailError

    try:
        return rail.read_uw() / 1e6
    except RailError:
        return None
