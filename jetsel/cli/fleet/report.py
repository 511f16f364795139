"""`jetsel fleet report`: the fleet as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jetsel.cli.fleet.opened import Days, DeadlineMs, Families, Gain, Periods, opened
from jetsel.cli.repo import Trusted, Url


def report(
    url: Url,
    trust: Trusted,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page to write.")],
    family: Families = [],  # noqa: B006  # typer makes a list of its own
    deadline_ms: DeadlineMs = None,
    days: Days = 7.0,
    gain: Gain = 0.005,
    periods: Periods = 3.0,
) -> None:
    """Write a page: what is expected of plans in force and of those proposed, outcomes, drift, power, and faults.

    It needs pip install 'jetsel[calibrate]' beside 'jetsel[fleet]'.
    """
    from jetsel.base.errors import ConfigError
    from jetsel.base.files import replace
    from jetsel.calibrate.report import NO_PAGE
    from jetsel.fleet.manager.page import render_fleet

    fleet = opened(url, trust, days)
    found = render_fleet(
        fleet.statuses(periods), fleet.proposals(fleet.planner(deadline_ms, gain), family), fleet.skipped
    )
    if found is None:
        raise ConfigError(NO_PAGE)
    replace(out, found.encode())
    typer.echo(f"{out}: {len(fleet.devices)} devices")
