"""`jetsel fleet status` and `report`: every device, its plan and what is wrong, on the terminal or as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jetsel.addons.fleet.commands.opened import Days, DeadlineMs, Families, Gain, Periods, opened, printable
from jetsel.addons.fleet.commands.repo import Trusted, Url
from jetsel.cli.options import Json, emit

if TYPE_CHECKING:
    from jetsel.addons.fleet.manager.status import DeviceStatus


def status(url: Url, trust: Trusted, periods: Periods = 3.0, json: Json = False) -> None:
    """Show each device: its last report, the serials of its plans, its limits and its faults.

    The exit status is 1 if an upload was skipped or a device has a fault.
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


def report(
    url: Url,
    trust: Trusted,
    out: Annotated[Path, typer.Option(metavar="FILE", help="HTML page to write.")],
    family: Families = [],  # noqa: B006  # typer makes a list of its own
    deadline_ms: DeadlineMs = None,
    days: Days = 7.0,
    gain: Gain = 0.005,
    periods: Periods = 3.0,
) -> None:
    """Write a page with the expected results of the current and proposed plans, outcomes, drift, power and faults.

    It needs pip install 'jetsel[calibrate]' in addition to 'jetsel[fleet]'.
    """
    from jetsel.addons.fleet.manager.status import render_fleet
    from jetsel.base.errors import ConfigError
    from jetsel.base.files import replace
    from jetsel.calibrate.report import NO_PAGE

    fleet = opened(url, trust, days)
    found = render_fleet(
        fleet.statuses(periods), fleet.proposals(fleet.planner(deadline_ms, gain), family), fleet.skipped
    )
    if found is None:
        raise ConfigError(NO_PAGE)
    replace(out, found.encode())
    typer.echo(f"{out}: {len(fleet.devices)} devices")
