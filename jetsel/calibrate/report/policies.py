"""What the first screen of the report shows of the policies: cards of those in question, and the chart."""

from __future__ import annotations

from jetsel.calibrate.judge.findings import Comparison, Findings, Result
from jetsel.calibrate.judge.words import score, short
from jetsel.calibrate.report import Chart
from jetsel.calibrate.report.overview import SINGLE, compared_results, statuses

Point = tuple[float, float]  # mean time in ms, score in hundredths


def cards(findings: Findings) -> list[tuple[str, Result, Result | None]]:
    """What is in use, and the candidate or what was in use before: status, figures, and those to compare with."""
    marks, current = statuses(findings), findings.current
    is_other = current is not None and current.name != findings.winner
    return [
        (marks[one.name], one, current if is_other and one.name == findings.winner else None)
        for one in compared_results(findings)
        if one.name in marks
    ]


def trade_off(findings: Findings) -> Chart:
    """Accuracy against time: every policy by its name, and the operating points that are offered as lines."""
    comparison, marks = findings.comparison, statuses(findings)
    series: dict[str, list[Point]] = {"Policies": [], "Single models": [], "Best possible choice": []}
    points, labels = {one.name: _point(one) for one in compared_results(findings)}, {}
    for name, point in points.items():
        kind = "Best possible choice" if name == "oracle" else "Policies"
        series["Single models" if name.startswith(SINGLE) else kind].append(point)
        labels[_label(name, marks.get(name), comparison)] = point
    lines: dict[str, list[Point]] = {}
    for name, result in comparison.front.items():
        lines.setdefault(f"Operating points of {name.partition(':')[0]}", []).append(_point(result))
    shown = {name: found for name, found in series.items() if found}
    return Chart(
        f"{score(findings.labels_from)} against time",
        "A line joins operating points: under load, and for a request that names one, any of them answers."
        if lines
        else "Better policies are higher and further to the left.",
        "Mean time, ms",
        f"{score(findings.labels_from)}, %",
        shown | {name: sorted(found) for name, found in lines.items()},
        lines,
        labels,
        [_label(name, mark, comparison) for name, mark in marks.items()],
    )


def _point(result: Result) -> Point:
    return result.time_ms.mean, 100 * result.top1


def _label(name: str, mark: str | None, comparison: Comparison) -> str:
    """A name as it stands in the chart, with what it is if that is worth a mark; what was fitted before has no name."""
    if mark is not None and name not in comparison.policies:
        return mark
    return f"{short(name.removeprefix(SINGLE))} ({mark})" if mark else short(name.removeprefix(SINGLE))
