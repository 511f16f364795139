"""`jetsel fleet plan`: which models each device should hold, and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jetsel.addons.fleet.commands.opened import Days, DeadlineMs, Families, Gain, opened, printable
from jetsel.addons.fleet.commands.repo import Trusted, Url
from jetsel.cli.options import Json, emit

if TYPE_CHECKING:
    from jetsel.addons.fleet.documents import Plan
    from jetsel.addons.fleet.manager.planning import Proposal


def plan(
    url: Url,
    trust: Trusted,
    write: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File to write the proposals to, for jetsel fleet roll-out.")
    ] = None,
    diff: Annotated[bool, typer.Option("--diff", help="Show only the models that would be added or removed.")] = False,
    family: Families = [],  # noqa: B006  # typer makes a list of its own
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

    fleet = opened(url, trust, days)
    planner = fleet.planner(deadline_ms, gain)
    found = fleet.proposals(planner, family)
    if write is not None:
        replace(write, msgspec.json.format(msgspec.json.encode(found)))
    changes = [line for one in found for line in _changes(one, planner.plans.get(one.device))]
    plain = [one for one in found if one.changes or not diff]
    emit(plain, json, lambda: _show_changes(changes) if diff else _show(found))


def _show_changes(changes: list[str]) -> None:
    for line in changes:
        typer.echo(line)


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
        words += (
            []
            if old is None or old.bundle == planned.bundle
            else [f"version {old.bundle.version} -> {planned.bundle.version}"]
        )
        lines.append(f"{one.device}: {name}: {' '.join(words) or 'another cascade'}")
    return [*lines, *(f"{one.device}: {name}: gone" for name in before)]


def _show(found: list[Proposal]) -> None:
    from jetsel.cli.terminal import console, table

    shown = table("device", "", ">now %", ">then %", ">ms", "models, first to last", "limited by")
    for one in found:
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
    for one in found:
        for line in _remarks(one):
            typer.echo(printable(f"{one.device}: {line}"))


def _remarks(one: Proposal) -> list[str]:
    """Which models the device loses, and why, and what is not known of it: a line for each reason."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in one.dropped.items():
        by_reason.setdefault(reason, []).append(name)
    return [*(f"{', '.join(names)}: removed: {reason}" for reason, names in by_reason.items()), *one.notes]
