"""`jetsel fleet status`: every device, its plan, and what is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import typer

from jetsel.cli.fleet.opened import Periods, opened, printable
from jetsel.cli.options import Json, emit
from jetsel.cli.repo import Trusted, Url

if TYPE_CHECKING:
    from jetsel.fleet.manager.status import DeviceStatus


def status(url: Url, trust: Trusted, periods: Periods = 3.0, json: Json = False) -> None:
    """Show devices: when each was heard of, its plans by their serials, its limits, and its faults.

    Exit status 1 where an upload was skipped or a device has a fault.
    """
    fleet = opened(url, trust)
    found = fleet.statuses(periods)
    emit({"devices": found, "skipped": fleet.skipped}, json, lambda: _show(found, fleet.skipped))
    raise typer.Exit(bool(fleet.skipped) or any(one.faults for one in found))


def _show(found: Sequence[DeviceStatus], skipped: Mapping[str, str]) -> None:
    from jetsel.cli.terminal import console, table

    shown = table("device", ">seen", ">planned", ">installed", "outcome", "limits", ">battery", ">drift", "faults")
    for one in found:
        shown.add_row(*_row(one))
    console().print(shown)
    for name, why in skipped.items():
        typer.echo(f"jetsel: {printable(name)} was skipped: {printable(why)}", err=True)


def _row(one: DeviceStatus) -> list[str]:
    limits = one.limits
    allowed = (
        () if limits is None else ((limits.storage_mb, "MB"), (limits.memory_mb, "MB memory"), (limits.budget_w, "W"))
    )
    return [
        one.device,
        "never" if one.seen_s is None else f"{one.seen_s / 3600:.1f} h",
        str(one.planned),
        str(one.installed),
        "-" if one.trial is None else one.trial.outcome,
        ", ".join(f"{value:g} {unit}" for value, unit in allowed if value is not None),
        "-" if one.battery_percent is None else f"{one.battery_percent:.0f} %",
        "-" if one.drift is None else f"{one.drift:.2f}",
        printable("; ".join(one.faults)),
    ]
