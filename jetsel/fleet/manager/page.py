"""The fleet on one page: what is expected of plans, outcomes, drift, energy, and what never came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from jetsel.calibrate.report import Chart, Listing, Section, render_sections
from jetsel.calibrate.report.parts import significant
from jetsel.fleet.manager.planning import Expected, Proposal
from jetsel.fleet.manager.status import DeviceStatus

MOST_ROWS = 50  # of a table, the worst first: a page of 10,000 devices is read by nobody

Points = list[tuple[float, float]]


def render_fleet(
    statuses: Sequence[DeviceStatus], proposals: Sequence[Proposal], skipped: Mapping[str, str]
) -> str | None:
    """Return the page, None where a library of it is missing; see jetsel.calibrate.report."""
    before = [one.before for one in proposals if one.before is not None]
    after = [one.after for one in proposals if one.after is not None]
    sentences = [
        f"{len(statuses)} devices, {sum(bool(one.faults) for one in statuses)} of them with a fault.",
        *(f"In force, {_mean(before)} of the answers are expected to be right and in time." for _ in before[:1]),
        *(
            f"As proposed, {_mean(after)}; {sum(one.changes for one in proposals)} devices would change."
            for _ in after[:1]
        ),
    ]
    for what, figures in (("drift", [one.drift for one in statuses]), ("power", [one.watts for one in statuses])):
        if not any(figure is not None for figure in figures):
            sentences.append(f"No device tells its {what}.")
    faults = {one.device: "; ".join(one.faults) for one in statuses if one.faults}
    sections = [
        Section("What is expected", _fronts(before, after), [_expected(proposals)]),
        Section("Plans", (), [_outcomes(statuses)]),
        Section("Drift", (), [_ranked("Median population stability index", statuses, lambda one: one.drift)]),
        Section("Energy", (), [_ranked("Mean power, W", statuses, lambda one: one.watts)]),
        Section("What is wrong", (), [_told("Devices", faults), _told("Uploads that were skipped", skipped)]),
    ]
    told = [one for one in sections if one.charts or any(listing.rows for listing in one.listings)]
    return render_sections("jetsel fleet report", "The fleet", sentences, told)


def _mean(expected: Sequence[Expected]) -> str:
    return f"{100 * sum(one.accuracy for one in expected) / len(expected):.1f} %"


def _fronts(before: Sequence[Expected], after: Sequence[Expected]) -> list[Chart]:
    """Accuracy against time, and against energy where it is known."""
    found = []
    for what, unit, figure in (("time", "ms", lambda one: one.mean_ms), ("energy", "mJ", lambda one: one.energy_mj)):
        series = {"In force": _points(before, figure), "Proposed": _points(after, figure)}
        if any(series.values()):
            finding = f"Each point is one or more devices whose answers take this {what} on the mean."
            found.append(
                Chart(f"Accuracy against {what}", finding, f"Mean {what}, {unit}", "Right and in time, %", series)
            )
    return found


def _points(expected: Iterable[Expected], figure: Callable[[Expected], float | None]) -> Points:
    """Each place where a device is, once."""
    found = {(float(f"{x:.3g}"), round(100 * one.accuracy, 1)) for one in expected if (x := figure(one))}
    return sorted(found)


def _expected(proposals: Sequence[Proposal]) -> Listing:
    changing = sorted((one for one in proposals if one.changes and one.after), key=_gain, reverse=True)
    rows = [
        [
            one.device,
            "-" if one.before is None else f"{100 * one.before.accuracy:.1f}",
            "-" if one.after is None else f"{100 * one.after.accuracy:.1f}",
            "; ".join(f"{planned.bundle.family}: {', '.join(planned.models)}" for planned in one.families),
            ", ".join(one.binds) or "nothing",
        ]
        for one in changing
    ]
    columns = ["Device", "Now, %", "Proposed, %", "Models", "Limited by"]
    return _cut("Devices that would change, the most gained first", columns, rows, (3, 4))


def _gain(one: Proposal) -> float:
    return (one.after.accuracy if one.after else 0.0) - (one.before.accuracy if one.before else 0.0)


def _outcomes(statuses: Sequence[DeviceStatus]) -> Listing:
    counted = Counter("none told" if one.trial is None else one.trial.outcome for one in statuses)
    return _cut(
        "Outcomes of the newest plans", ["Outcome", "Devices"], [[name, f"{n:,}"] for name, n in counted.items()]
    )


def _ranked(what: str, statuses: Sequence[DeviceStatus], figure: Callable[[DeviceStatus], float | None]) -> Listing:
    found = sorted(((value, one.device) for one in statuses if (value := figure(one)) is not None), reverse=True)
    return _cut(f"{what}, the most first", ["Device", what], [[name, significant(value)] for value, name in found])


def _told(what: str, reasons: Mapping[str, str]) -> Listing:
    return _cut(what, ["Name", "Why"], [[name, why] for name, why in sorted(reasons.items())], (1,))


def _cut(caption: str, columns: list[str], rows: list[list[str]], text: tuple[int, ...] = ()) -> Listing:
    cut = "" if len(rows) <= MOST_ROWS else f": {MOST_ROWS} of {len(rows):,}"
    return Listing(f"{caption}{cut}", columns, rows[:MOST_ROWS], text)
