"""State of each device, and the page of the fleet: plans and their results, drift, energy, faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from jetsel.addons.fleet.documents import Plan
from jetsel.addons.fleet.manager.devices import Device
from jetsel.addons.fleet.manager.planning import ExpectedResult, Proposal
from jetsel.addons.fleet.usage import DeviceLimits, Trial
from jetsel.calibrate.judge.words import significant
from jetsel.calibrate.report import Chart, Listing, Section, render_sections

CLOCK_S = 3600.0  # plus two periods: tolerance of a device's clock, since a line waits until it can be sent
_PERIOD_S = 86_400.0  # of a device that has reported once


class DeviceStatus(Struct, frozen=True, kw_only=True):
    """One device. seen_s: seconds since its last upload, by the storage's clock, None if it never reported.

    clock_s: how far its clock is ahead of that, None if they agree. planned, installed: serials, 0 for none. drift: of
    the family with the largest. energy_j: above idle, since its daemon's start. missing: lines that never came. faults:
    in words.
    """

    device: str
    seen_s: float | None = None
    clock_s: float | None = None
    planned: int = 0
    installed: int = 0
    trial: Trial | None = None
    limits: DeviceLimits | None = None
    battery_percent: float | None = None
    drift: float | None = None
    energy_j: float | None = None
    watts: float | None = None
    missing: int = 0
    dropped: int = 0
    faults: tuple[str, ...] = ()


def statuses(
    devices: Mapping[str, Device], plans: Mapping[str, tuple[Plan, float]], now_s: float, periods: float = 3.0
) -> list[DeviceStatus]:
    """Return the state of every device that has reported, or has a plan.

    plans: each device's plan, and the time of its upload. now_s: both times by the storage's clock, in seconds since
    1970. periods: number of missed reports that count as a fault.
    """
    names = sorted(devices.keys() | plans.keys())
    return [_status(name, devices.get(name), plans.get(name), now_s, periods) for name in names]


def _status(
    name: str, device: Device | None, written: tuple[Plan, float] | None, now_s: float, periods: float
) -> DeviceStatus:
    plan, written_s = written or (None, 0.0)
    planned = 0 if plan is None else plan.serial
    if device is None:
        return DeviceStatus(device=name, planned=planned, faults=("it has a plan, but never reported",))
    line, period_s = device.line, device.period_s or _PERIOD_S
    ahead_s = line.at_s - device.uploaded_s
    return DeviceStatus(
        device=name,
        seen_s=now_s - device.uploaded_s,
        clock_s=ahead_s if abs(ahead_s) > CLOCK_S + 2 * period_s else None,
        planned=planned,
        installed=line.plan,
        trial=line.trial,
        limits=line.limits,
        battery_percent=line.daemon.battery_percent,
        drift=max((one.drift for one in line.daemon.families if one.drift is not None), default=None),
        energy_j=line.daemon.energy_j,
        watts=line.daemon.watts,
        missing=device.missing,
        dropped=line.dropped,
        faults=tuple(_faults(device, plan, written_s, period_s, now_s, periods)),
    )


def _faults(
    device: Device, plan: Plan | None, written_s: float, period_s: float, now_s: float, periods: float
) -> Iterator[str]:
    line, trial, ahead_s = device.line, device.line.trial, device.line.at_s - device.uploaded_s
    if line.silence is not None:
        yield f"its daemon does not reply: {line.silence}"
    if now_s - device.uploaded_s > periods * period_s:
        yield f"no report for {(now_s - device.uploaded_s) / period_s:.1f} periods"
    if abs(ahead_s) > CLOCK_S + 2 * period_s:
        yield f"its clock is {abs(ahead_s) / 86400:.1f} days {'ahead' if ahead_s > 0 else 'behind'}"
    if device.missing:
        yield f"{device.missing} lines are missing, {device.missing_first} is the first"
    if line.dropped:
        yield f"{line.dropped} lines were lost before they could be sent"
    if trial is not None and trial.outcome != "installed" and (plan is not None or trial.outcome != "waiting"):
        yield f"plan {trial.serial} {trial.outcome}: {trial.reason}"
    taken = max(line.plan, 0 if trial is None else trial.serial)
    if plan is not None and plan.serial > taken and device.uploaded_s > written_s + period_s:
        yield f"plan {plan.serial} was not installed"


MOST_ROWS = 50  # of a table, the worst first, because nobody reads 10,000


def render_fleet(
    statuses: Sequence[DeviceStatus], proposals: Sequence[Proposal], skipped: Mapping[str, str]
) -> str | None:
    """Return the page, None if a library for it is missing; see jetsel.calibrate.report."""
    before = [one.before for one in proposals if one.before is not None]
    after = [one.after for one in proposals if one.after is not None]
    sentences = [f"{len(statuses)} devices, {sum(bool(one.faults) for one in statuses)} of them with a fault."]
    if before:
        sentences.append(
            f"With the current plans, {_mean(before)} of the answers are expected to be right and in time."
        )
    if after:
        changes = sum(one.changes for one in proposals)
        sentences.append(f"With the proposed plans, {_mean(after)}; {changes} devices would change.")
    for title, figures in (("drift", [one.drift for one in statuses]), ("power", [one.watts for one in statuses])):
        if not any(figure is not None for figure in figures):
            sentences.append(f"No device reports its {title}.")
    faults = {one.device: "; ".join(one.faults) for one in statuses if one.faults}
    sections = [
        Section("What is expected", _charts(before, after), [_changes(proposals)]),
        Section("Plans", (), [_outcomes(statuses)]),
        Section("Drift", (), [_ranking("Median population stability index", statuses, lambda one: one.drift)]),
        Section("Energy", (), [_ranking("Mean power, W", statuses, lambda one: one.watts)]),
        Section("What is wrong", (), [_reasons("Devices", faults), _reasons("Uploads that were skipped", skipped)]),
    ]
    with_data = [one for one in sections if one.charts or any(listing.rows for listing in one.listings)]
    return render_sections("jetsel fleet report", "The fleet", sentences, with_data)


def _mean(expected: Sequence[ExpectedResult]) -> str:
    return f"{100 * sum(one.accuracy for one in expected) / len(expected):.1f} %"


def _charts(before: Sequence[ExpectedResult], after: Sequence[ExpectedResult]) -> list[Chart]:
    """Return charts of accuracy against time, and against energy if that is known."""
    charts = []
    for title, unit, figure in (("time", "ms", lambda one: one.mean_ms), ("energy", "mJ", lambda one: one.energy_mj)):
        series = {"In force": _points(before, figure), "Proposed": _points(after, figure)}
        if any(series.values()):
            finding = f"Each point is one or more devices whose answers take this {title} on average."
            charts.append(
                Chart(f"Accuracy against {title}", finding, f"Mean {title}, {unit}", "Right and in time, %", series)
            )
    return charts


def _points(
    expected: Iterable[ExpectedResult], figure: Callable[[ExpectedResult], float | None]
) -> list[tuple[float, float]]:
    """Return each distinct point of the devices once."""
    points = {(float(f"{x:.3g}"), round(100 * one.accuracy, 1)) for one in expected if (x := figure(one))}
    return sorted(points)


def _changes(proposals: Sequence[Proposal]) -> Listing:
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
    return _listing("Devices that would change, largest gain first", columns, rows, (3, 4))


def _gain(one: Proposal) -> float:
    return (one.after.accuracy if one.after else 0.0) - (one.before.accuracy if one.before else 0.0)


def _outcomes(statuses: Sequence[DeviceStatus]) -> Listing:
    counted = Counter("none told" if one.trial is None else one.trial.outcome for one in statuses)
    return _listing(
        "Outcomes of the newest plans", ["Outcome", "Devices"], [[name, f"{n:,}"] for name, n in counted.items()]
    )


def _ranking(title: str, statuses: Sequence[DeviceStatus], figure: Callable[[DeviceStatus], float | None]) -> Listing:
    ranked = sorted(((value, one.device) for one in statuses if (value := figure(one)) is not None), reverse=True)
    rows = [[name, significant(value)] for value, name in ranked]
    return _listing(f"{title}, largest first", ["Device", title], rows)


def _reasons(title: str, reasons: Mapping[str, str]) -> Listing:
    return _listing(title, ["Name", "Why"], [[name, why] for name, why in sorted(reasons.items())], (1,))


def _listing(caption: str, columns: list[str], rows: list[list[str]], text: tuple[int, ...] = ()) -> Listing:
    cut = "" if len(rows) <= MOST_ROWS else f": {MOST_ROWS} of {len(rows):,}"
    return Listing(f"{caption}{cut}", columns, rows[:MOST_ROWS], text)
