"""`jetsel power record`: write what every rail reads to a file that can be replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jetsel.cli.options import ConfigFile
from jetsel.cli.power.options import Replay, Sysfs


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
    from jetsel.power.trace import Writer, rows

    found = sensors(section(config, sysfs, replay))
    count = 0
    try:
        with out.open("x", encoding="utf-8", newline="") as file, contextlib.suppress(KeyboardInterrupt):
            names = [rail.name for rail in found.rails]
            board = found.board.name if found.board else None
            writer = Writer(file, board, names, found.total_of, [rail.resolution_w for rail in found.rails])
            for row in rows(found.rails, seconds, rate_hz):
                writer.row(*row)
                count += 1
    except FileExistsError:
        raise PowerError(f"{out} is there already: name another file, or remove it") from None
    except OSError as fault:
        raise PowerError(f"{out}: {fault.strerror}: {count} rows were written; name another file") from None
    finally:
        found.close()
    typer.echo(f"{out}: {count} rows of {', '.join(names)}")
