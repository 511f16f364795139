"""The tables and the chart of the report: policies against each other, what choosing costs, models' confidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from jetsel.calibrate.judge.findings import Comparison, Findings, Result
from jetsel.calibrate.judge.metrics import undominated
from jetsel.calibrate.judge.words import (
    UNKNOWN,
    Words,
    change,
    interval,
    joined,
    percent,
    short,
    signed,
    significant,
)
from jetsel.calibrate.report.parts import Cell, ChartFigure, Table, lines

Columns: TypeAlias = "dict[str, Callable[[Result], Cell]]"  # a column's name -> a result's cell in it


def ordered(comparison: Comparison) -> dict[str, Result]:
    """Every policy and bound by name, the fastest first: the order of the tables and charts."""
    return dict(sorted((comparison.policies | comparison.bounds).items(), key=lambda item: item[1].time_ms.mean))


def statuses(findings: Findings) -> dict[str, str]:
    """The policy that is in use, the winner, and what was in use before, each with what it is."""
    current = {} if findings.current is None else {findings.current.name: "in use"}
    if findings.installed:
        return dict.fromkeys(current, "in use before") | {findings.winner: "in use now"}
    return {findings.winner: "candidate, not installed"} | current


def cards(findings: Findings) -> list[tuple[str, Result, Result | None]]:
    """What is in use, and the candidate or what was in use before: status, figures, and those to compare with."""
    comparison, current = findings.comparison, findings.current
    results = comparison.policies if current is None else comparison.policies | {current.name: current}
    shown = sorted(statuses(findings).items(), key=lambda item: item[1] not in ("in use", "in use now"))
    is_other = current is not None and current.name != findings.winner
    return [(what, results[name], current if is_other and name == findings.winner else None) for name, what in shown]


def gist(findings: Findings, words: Words) -> Table:
    """The first table: each policy in the few numbers that decide."""
    comparison = findings.comparison
    results = ordered(comparison)
    against = f"compared with {short(comparison.best_single)}"
    columns: Columns = {
        f"{words.score(1)}, %": lambda r: (percent(r.top1), interval(r.top1_interval)),
        "Mean time, ms": lambda r: significant(r.time_ms.mean),
        "Mean energy, mJ": lambda r: significant(None if r.energy_mj is None else r.energy_mj.mean),
        f"Points, {against}": lambda r: signed(r.vs_best_single.points),
        f"Time, {against}": lambda r: change(r.vs_best_single.time_ratio),
    }
    if unmeasured(results) is not None:
        del columns["Mean energy, mJ"]
    current = [] if findings.current is None or findings.current.name in results else [findings.current]
    policies = [result for name, result in results.items() if name in comparison.policies]
    groups = {
        "": current,
        "Policies": [result for result in policies if not result.name.startswith("single:")],
        "Single models": [result for result in policies if result.name.startswith("single:")],
        "The best possible choice": [comparison.bounds["oracle"]],
    }
    caption = f"Policies, the fastest first; {short(comparison.best_single)} is the best single model"
    return _table("gist", caption, columns, groups, statuses(findings))


def unmeasured(results: Mapping[str, Result]) -> str | None:
    """Why no energy is known, if none is of any result."""
    if any(result.energy_mj is not None for result in results.values()):
        return None
    return "; ".join(dict.fromkeys(_reason(result) for result in results.values()))


def policy_tables(comparison: Comparison, words: Words) -> list[Table]:
    """All numbers, each table with the policies first and the bounds beneath."""
    results = ordered(comparison)
    has_top5 = any(result.top5 < 1 for result in results.values())
    contents = {
        "answers": (f"How often each policy {words.is_right}", _answers(words, has_top5=has_top5)),
        "costs": ("Time and energy", _costs(results)),
        "runs": ("Share of the images that each model ran on, %", _runs(results)),
    }
    groups = {
        "Policies": [result for name, result in results.items() if name in comparison.policies],
        "Bounds": [result for name, result in results.items() if name in comparison.bounds],
    }
    return [_table(key, *content, groups) for key, content in contents.items()]


def _table(
    key: str, caption: str, columns: Columns, groups: Mapping[str, list[Result]], marks: Mapping[str, str] = {}
) -> Table:
    rows = {name: [[one.name, *(cell(one) for cell in columns.values())] for one in of] for name, of in groups.items()}
    return Table(key, caption, ["Policy", *columns], rows, marks=marks)


def _answers(words: Words, *, has_top5: bool) -> Columns:
    top5: Columns = {f"{words.score(5)}, %": lambda r: (percent(r.top5), interval(r.top5_interval))}
    return {
        f"{words.score(1)}, %": lambda r: (percent(r.top1), interval(r.top1_interval)),
        **(top5 if has_top5 else {}),
        "Precision, %": lambda r: percent(r.precision),
        "Recall, %": lambda r: percent(r.recall),
        "F1, %": lambda r: percent(r.f1),
        "Points against the best single": lambda r: signed(r.vs_best_single.points),
        "Points against a random mix": lambda r: signed(r.points_over_coin),
        "Fallback, %": lambda r: percent(r.in_doubt),
    }


def _costs(results: Mapping[str, Result]) -> Columns:
    times: Columns = {
        "Mean time, ms": lambda r: (significant(r.time_ms.mean), interval(r.time_interval, significant)),
        "Median (p50), ms": lambda r: significant(r.time_ms.p50),
        "95 % within (p95), ms": lambda r: significant(r.time_ms.p95),
        "Time against the best single": lambda r: change(r.vs_best_single.time_ratio),
    }
    if unmeasured(results) is not None:
        return times
    return times | {
        "Mean energy, mJ": lambda r: (
            f"{UNKNOWN}: {_reason(r)}" if r.energy_mj is None else significant(r.energy_mj.mean)
        ),
        "Energy p50, mJ": lambda r: significant(r.energy_mj and r.energy_mj.p50),
        "Energy p95, mJ": lambda r: significant(r.energy_mj and r.energy_mj.p95),
        "Energy against the best single": lambda r: change(r.vs_best_single.energy_ratio),
    }


def _runs(results: Mapping[str, Result]) -> Columns:
    def share(model: str) -> Callable[[Result], Cell]:
        return lambda result: percent(result.runs.get(model, 0.0))

    return {model: share(model) for result in results.values() for model in result.runs}


def _reason(result: Result) -> str:
    return result.energy_reason or "no reason was recorded"


def reliability(comparison: Comparison) -> Table:
    """How far each model's confidence is from how often it is right, before and after temperature scaling."""
    rows = [
        [one.model, significant(one.temperature), percent(one.error_before), percent(one.error_after)]
        for one in comparison.reliability
    ]
    columns = ["Model", "Temperature", "Error before, points", "Error after, points"]
    caption = "Difference between each model's confidence and its share of right answers (expected calibration error)"
    return Table("reliability", caption, columns, {"": rows})


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
    points = {n: (r.time_ms.mean, 100 * r.top1) for n, r in found.items() if n not in left_out}
    return dict(sorted(points.items(), key=lambda item: item[1]))


def trade_off(findings: Findings, words: Words) -> ChartFigure:
    """Accuracy against time: every policy by its name, and the front of all operating points that were tried."""
    comparison = findings.comparison
    score, points, marks = words.score(1), points_of(findings, comparison), statuses(findings)
    best = [name for *_, name in undominated((*points[name], name) for name in points if name in comparison.policies)]
    finding = f"Best policies for their time: {joined([short(name) for name in best])}."
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
    return ChartFigure("front", f"{score} against time", finding, drawing, numbers)


def _label(name: str, mark: str | None, comparison: Comparison) -> str:
    """A name as it stands in the chart, with what it is if that is worth a mark; what was fitted before has no name."""
    status = "" if mark is None else mark.partition(",")[0]
    if mark is not None and name not in comparison.policies:
        return status
    return f"{short(name.removeprefix(SINGLE))} ({status})" if status else short(name.removeprefix(SINGLE))
