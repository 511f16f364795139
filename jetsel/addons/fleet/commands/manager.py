"""`jetsel fleet status`, `plan` and `report`: the state and the best models of each device, as text or as a page."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jetsel.addons.fleet.commands.repo import Trusted, Url
from jetsel.addons.fleet.signing import read_key
from jetsel.base.errors import ConfigError, RepositoryError, pip_install
from jetsel.base.events import harmless
from jetsel.cli.options import Json, emit

if TYPE_CHECKING:
    from jetsel.addons.fleet.documents import Plan
    from jetsel.addons.fleet.manager.planning import Proposal
    from jetsel.addons.fleet.manager.status import DeviceStatus

Days = Annotated[float, typer.Option(min=0.01, help="Days of reports to use, back from a device's newest report.")]
Periods = Annotated[float, typer.Option(min=1, help="Number of missed reports after which a device counts as faulty.")]
DeadlineMs = Annotated[
    float | None, typer.Option(min=0, help="Deadline in ms for devices that report none: later answers count as wrong.")
]
Families = Annotated[
    list[str],
    typer.Option(
        "--family",
        metavar="NAME",
        help="Family that devices should hold; repeatable (default: those that each device has, or all if none).",
    ),
]
Gain = Annotated[
    float, typer.Option(min=0, max=1, help="Minimum accuracy gain, as a share, that justifies a new plan.")
]


class OpenedFleet:
    """A repository and its devices. skipped: why uploads were skipped, by name."""

    def __init__(self, url: str, trusted: Collection[str], days: float = 7.0) -> None:
        """Add new uploads of devices. Raises ConfigError if a library is missing, and RepositoryError."""
        check_libraries()
        from jetsel.addons.fleet.manager.devices import read_devices
        from jetsel.addons.fleet.manager.metadata import Metadata
        from jetsel.addons.fleet.storage import Storage

        self.storage, self.trusted = Storage(url), trusted
        table = Metadata(self.storage)
        self.skipped = table.gather()
        self.devices = read_devices(table, days)

    def statuses(self, periods: float) -> list[DeviceStatus]:
        """Return the state of every device."""
        from jetsel.addons.fleet.documents import PLANS, plan_path
        from jetsel.addons.fleet.manager.planning import read_plans
        from jetsel.addons.fleet.manager.status import statuses

        try:
            now_s = self.storage.now_s()
        except RepositoryError:  # this user may only read: ages are by this machine's clock
            now_s = time.time()
        written_s = {one.name: one.modified_s for one in self.storage.stored(PLANS)}
        plans = {
            name: (plan, written_s.get(plan_path(name), now_s))
            for name, plan in read_plans(self.storage, self.trusted).items()
        }
        return statuses(self.devices, plans, now_s, periods)

    def proposals(
        self, deadline_ms: float | None, gain: float, families: Collection[str]
    ) -> tuple[list[Proposal], Mapping[str, Plan]]:
        """Return the proposal for every device, and the devices' plans; see Planner."""
        from jetsel.addons.fleet.manager.planning import Planner

        planner = Planner(self.storage, self.trusted, deadline_ms=deadline_ms, gain=gain)
        return [planner.propose(name, device, families) for name, device in self.devices.items()], planner.plans


def check_libraries() -> None:
    """Raise ConfigError if a library of the manager is missing."""
    for name in ("duckdb", "scipy"):
        if importlib.util.find_spec(name) is None:
            raise ConfigError(f"jetsel fleet needs {name}: {pip_install('fleet')}")


def status(url: Url, trust: Trusted, periods: Periods = 3.0, json: Json = False) -> None:
    """Show each device: its last report, the serials of its plans, its limits and its faults.

    The exit status is 1 if an upload was skipped or a device has a fault.
    """
    fleet = OpenedFleet(url, [read_key(path) for path in trust])
    device_statuses = fleet.statuses(periods)
    plain = {"devices": device_statuses, "skipped": fleet.skipped}
    emit(plain, json, lambda: _show_statuses(device_statuses, fleet.skipped))
    raise typer.Exit(bool(fleet.skipped) or any(one.faults for one in device_statuses))


def _show_statuses(device_statuses: Sequence[DeviceStatus], skipped: Mapping[str, str]) -> None:
    from jetsel.cli.terminal import console, table

    shown = table("device", ">seen", ">planned", ">installed", "outcome", "limits", ">battery", ">drift", "faults")
    for one in device_statuses:
        shown.add_row(*_status_row(one))
    console().print(shown)
    for name, why in skipped.items():
        typer.echo(f"jetsel: {harmless(name)} was skipped: {harmless(why)}", err=True)


def _status_row(one: DeviceStatus) -> list[str]:
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
        harmless("; ".join(one.faults)),
    ]


def plan(
    url: Url,
    trust: Trusted,
    write: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File to write the proposals to, for jetsel fleet roll-out.")
    ] = None,
    diff: Annotated[bool, typer.Option("--diff", help="Show only the models that would be added or removed.")] = False,
    family: Families = [],  # noqa: B006  # typer makes its own list
    deadline_ms: DeadlineMs = None,
    days: Days = 7.0,
    gain: Gain = 0.005,
    json: Json = False,
) -> None:
    """Propose, for each device, the models and cascades that answer most of its requests correctly and in time.

    A proposal respects the device's limits of storage, memory, power and time, and is based on its own traffic and
    latencies. Nothing is changed.
    """
    import msgspec

    from jetsel.base.files import replace

    fleet = OpenedFleet(url, [read_key(path) for path in trust], days)
    proposals, plans = fleet.proposals(deadline_ms, gain, family)
    if write is not None:
        replace(write, msgspec.json.format(msgspec.json.encode(proposals)))
    changes = [line for one in proposals for line in _changes(one, plans.get(one.device))]
    plain = [one for one in proposals if one.changes or not diff]
    emit(plain, json, lambda: [*map(typer.echo, changes)] if diff else _show_plans(proposals))


def _changes(one: Proposal, plan: Plan | None) -> list[str]:
    if not one.changes:
        return []
    before = {planned.bundle.family: planned for planned in (() if plan is None else plan.families)}
    lines = []
    for planned in one.families:
        name, old = planned.bundle.family, before.pop(planned.bundle.family, None)
        had = () if old is None else old.models
        words = [f"+{model}" for model in planned.models if model not in had]
        words += [f"-{model}" for model in had if model not in planned.models]
        if old is not None and old.bundle != planned.bundle:
            words.append(f"version {old.bundle.version} -> {planned.bundle.version}")
        lines.append(f"{one.device}: {name}: {' '.join(words) or 'another cascade'}")
    return [*lines, *(f"{one.device}: {name}: gone" for name in before)]


def _show_plans(proposals: list[Proposal]) -> None:
    from jetsel.cli.terminal import console, table

    shown = table("device", "", ">now %", ">then %", ">ms", "models, first to last", "limited by")
    for one in proposals:
        now, then = one.before, one.after
        shown.add_row(
            one.device,
            "change" if one.changes else "keep" if one.families else "none",
            "-" if now is None else f"{100 * now.accuracy:.1f}",
            "-" if then is None else f"{100 * then.accuracy:.1f}",
            "-" if then is None else f"{then.mean_ms:.2f}",
            "\n".join(f"{planned.bundle.family}: {' '.join(planned.cascade)}" for planned in one.families),
            "\n".join(f"{name} ({100 * share:.1f} % without)" for name, share in one.binds.items()),
        )
    console().print(shown)
    for one in proposals:
        removed = [f"{', '.join(one.dropped)}: removed: {why}" for why in {*one.dropped.values()}]  # one for all
        for line in (*removed, *one.notes):
            typer.echo(harmless(f"{one.device}: {line}"))


def report(
    url: Url,
    trust: Trusted,
    out: Annotated[Path, typer.Option(metavar="FILE", help="HTML page to write.")],
    family: Families = [],  # noqa: B006  # typer makes its own list
    deadline_ms: DeadlineMs = None,
    days: Days = 7.0,
    gain: Gain = 0.005,
    periods: Periods = 3.0,
) -> None:
    """Write a page with the expected results of the current and proposed plans, outcomes, drift, power and faults.

    It needs pip install 'jetsel[calibrate]' in addition to 'jetsel[fleet]'.
    """
    from jetsel.addons.fleet.manager.status import render_fleet
    from jetsel.base.files import replace
    from jetsel.calibrate.report import NO_PAGE

    fleet = OpenedFleet(url, [read_key(path) for path in trust], days)
    proposals, _ = fleet.proposals(deadline_ms, gain, family)
    page = render_fleet(fleet.statuses(periods), proposals, fleet.skipped)
    if page is None:
        raise ConfigError(NO_PAGE)
    replace(out, page.encode())
    typer.echo(f"{out}: {len(fleet.devices)} devices")
