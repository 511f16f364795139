"""`jetsel power`: the rails once, or live with the last minute of each as a sparkline."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from jetsel.cli.options import ConfigFile, Json
from jetsel.cli.power.options import Replay, Sysfs

if TYPE_CHECKING:
    from rich.table import Table

    from jetsel.power.snapshot import Snapshot

HISTORY = 60  # readings in a sparkline, fewer in a narrow terminal
TOTAL = ""  # no rail's name
SPARKS = "▁▂▃▄▅▆▇█"  # one to eight eighths, U+2581 to U+2588
BESIDE = 45  # columns that a row's name and figures take


def show(
    ctx: typer.Context,
    once: Annotated[bool, typer.Option("--once", help="Print one reading and end.")] = False,
    json: Json = False,
    every_s: Annotated[float, typer.Option(min=0.05, max=3600, help="Seconds from one reading to the next.")] = 0.5,
    sysfs: Sysfs = None,
    replay: Replay = None,
    config: ConfigFile = None,
) -> None:
    """Show what the board's power sensors say: each rail, and the total of those that make it.

    In a terminal the readings go on until Ctrl-C, with the last of them drawn beside each rail. Where the output is no
    terminal one reading is printed; with --json one object for each reading, until Ctrl-C unless --once.
    """
    if ctx.invoked_subcommand is not None:
        return
    from jetsel.cli.power.options import section, sensors
    from jetsel.power.snapshot import take

    found = sensors(section(config, sysfs, replay))
    try:
        if once or (not json and not sys.stdout.isatty()):
            _print(take(found), as_json=json)
        elif json:
            _every(every_s, lambda: _print(take(found), as_json=True))
        else:
            _live(every_s, lambda: take(found))
    finally:
        found.close()


def _every(seconds: float, work: Callable[[], None]) -> None:
    """Do the work again and again, on a schedule that does not drift."""
    import time

    due = time.monotonic()
    while True:
        work()
        due = max(due + seconds, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))


def _print(seen: Snapshot, *, as_json: bool) -> None:
    import msgspec

    from jetsel.cli.terminal import console

    if as_json:
        typer.echo(msgspec.json.encode(seen).decode())
        return
    out = console()
    out.print(drawn(seen, {}))
    for line in _below(seen):
        out.print(line, markup=False)


def _live(every_s: float, look: Callable[[], Snapshot]) -> None:
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    from jetsel.cli.terminal import console

    history: dict[str, list[float]] = {}
    out = console()
    with Live(console=out, auto_refresh=False, transient=False) as live:

        def turn() -> None:
            seen = look()
            remember(history, seen)
            live.update(
                Group(
                    drawn(seen, history, max(10, min(HISTORY, out.width - BESIDE))),
                    *(Text(line) for line in _below(seen)),
                ),
                refresh=True,
            )

        _every(every_s, turn)


def remember(history: dict[str, list[float]], seen: Snapshot) -> None:
    """Add a snapshot's watts to the history of each rail, and of the total under TOTAL, and let the oldest go."""
    now = {rail.name: rail.watts for rail in seen.rails}
    if seen.total_w is not None:
        now[TOTAL] = seen.total_w
    for name, watts in now.items():
        kept = history.setdefault(name, [])
        kept.append(watts)
        del kept[:-HISTORY]


def drawn(seen: Snapshot, history: dict[str, list[float]], readings: int = HISTORY) -> Table:
    """Return the rails as a table, with a sparkline of so many readings where there is a history."""
    from rich.markup import escape

    from jetsel.cli.terminal import table

    columns = ["rail", ">watts", ">volts", ">amps"]
    shown = table(*columns, f"last {readings} readings") if history else table(*columns)
    shown.title = escape(seen.board or "a board that is not in the table")
    rows = [(rail.name, rail.watts, rail.volts, rail.amps) for rail in seen.rails]
    if seen.total_w is not None:
        rows.append((TOTAL, seen.total_w, None, None))
    for name, watts, volts, amps in rows:
        cells = [escape(name) or "total", f"{watts:.3f}", _or_dash(volts), _or_dash(amps)]
        if history:
            cells.append(sparkline(history.get(name, [])[-readings:]))
        shown.add_row(*cells, style="bold" if name == TOTAL else None)
    return shown


def sparkline(values: Sequence[float]) -> str:
    """Return one block for each value, from the least (an eighth) to the largest (whole); a flat series stays low."""
    least, span = min(values, default=0.0), max(values, default=0.0) - min(values, default=0.0)
    return "".join(SPARKS[round((value - least) / span * (len(SPARKS) - 1)) if span else 0] for value in values)


def _below(seen: Snapshot) -> list[str]:
    total = f"the total is {' + '.join(seen.total_of)}" if seen.total_w is not None else "no total"
    return [total, *(f"not read: {rail.name}: {rail.reason}" for rail in seen.dropped)]


def _or_dash(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
