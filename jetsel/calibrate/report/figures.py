"""Accuracy against time, of every policy and the oracle."""

from __future__ import annotations

from jetsel.calibrate.findings import Comparison, Findings
from jetsel.calibrate.metrics import undominated
from jetsel.calibrate.report.charts import lines
from jetsel.calibrate.report.parts import Figure, Table
from jetsel.calibrate.report.policies import ordered, statuses
from jetsel.calibrate.report.words import Words, joined, percent, short, significant

Point = tuple[float, float]  # mean time in ms, score in hundredths

KINDS = ("Policies", "Single models", "Best possible choice")
FRONT = "Policies for other time limits"
SINGLE = "single:"


def points_of(findings: Findings, comparison: Comparison) -> dict[str, Point]:
    """Every policy, what is in use and the oracle, the fastest first; the other bounds are single models or random."""
    found = ordered(comparison)
    if findings.current is not None:
        found = found | {findings.current.name: findings.current}
    left_out = comparison.bounds.keys() - {"oracle"}
    points = {n: (r.time_ms.mean, 100 * r.share(comparison.criterion)) for n, r in found.items() if n not in left_out}
    return dict(sorted(points.items(), key=lambda item: item[1]))


def trade_off(findings: Findings, words: Words) -> Figure:
    """Accuracy against time: every policy by its name, and the front of all operating points that were tried."""
    comparison = findings.comparisons[findings.decides]
    score, points, marks = words.score(comparison.criterion), points_of(findings, comparison), statuses(findings)
    best = [name for *_, name in undominated((*points[name], name) for name in points if name in comparison.policies)]
    finding = f"The best for the time that they take: {joined([short(name) for name in best])}."
    series: dict[str, list[Point]] = {kind: [] for kind in KINDS}
    for name, point in points.items():
        kind = "Best possible choice" if name == "oracle" else "Policies"
        series["Single models" if name.startswith(SINGLE) else kind].append(point)
    series[FRONT] = [(ms, 100 * share) for ms, share, _ in sorted(comparison.front)]
    shown = {name: found for name, found in series.items() if found}
    names = {name: _label(name, marks.get(name), comparison) for name in points}
    labels = {names[name]: point for name, point in points.items()}
    drawing = lines("Mean time, ms", f"{score}, %", shown, KINDS, labels, [names[name] for name in marks])
    front = [[way, significant(ms), percent(share)] for ms, share, way in sorted(comparison.front)]
    numbers = Table("front-numbers", FRONT, ["Policy", "Mean time, ms", f"{score}, %"], {"": front})
    return Figure("front", f"{score} against time", finding, drawing, numbers)


def _label(name: str, mark: str | None, comparison: Comparison) -> str:
    """A name as it stands in the chart, with what it is if that is worth a mark; what was fitted before has no name."""
    status = "" if mark is None else mark.partition(",")[0]
    if mark is not None and name not in comparison.policies:
        return status
    return f"{short(name.removeprefix(SINGLE))} ({status})" if status else short(name.removeprefix(SINGLE))
