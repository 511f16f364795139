"""The first screen of a report: the overview table, which a terminal prints too, the cards and the chart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from jetsel.calibrate.judge.findings import Comparison, Findings, Result
from jetsel.calibrate.judge.metrics import undominated
from jetsel.calibrate.judge.words import change, metric_name, percent, short, signed, significant
from jetsel.calibrate.report import Chart, Listing

SINGLE = "single:"
LONGEST = 26  # characters that a name may have


def statuses(findings: Findings) -> dict[str, str]:
    """Return policy -> "in use", "in use now", "in use before" or "candidate"; other policies have no status."""
    current = {} if findings.current is None else {findings.current.name: "in use"}
    if findings.installed:
        return dict.fromkeys(current, "in use before") | {findings.winner: "in use now"}
    return {findings.winner: "candidate"} | current


def compared_results(findings: Findings) -> list[Result]:
    """Return the results in the order of the overview.

    That is: policy in use, candidate, other policies, single models, oracle; each group from fast to slow.
    """
    comparison, marks = findings.comparison, statuses(findings)
    results = comparison.policies | {"oracle": comparison.bounds["oracle"]}
    if findings.current is not None:
        results = results | {findings.current.name: findings.current}

    def place(result: Result) -> tuple[bool, bool, bool, bool, float]:
        is_single, mark = result.name.startswith(SINGLE), marks.get(result.name)
        is_first = mark in ("in use", "in use now")
        return not is_first, mark is None, result.name == "oracle", is_single, result.time_ms.mean

    return sorted(results.values(), key=place)


def overview(
    results: Sequence[Result], best_single: str, labels_from: str | None, marks: Mapping[str, str] = {}
) -> Listing:
    """Return the table with a row for each result. labels_from: the model whose answers replace labels, or None.

    best_single: the single model that the columns Points and Time compare with. marks: policy to highlight -> why.
    """
    columns: dict[str, Callable[[Result], str]] = {
        f"{metric_name(labels_from)}, %": lambda r: f"{percent(r.top1)} \u00b1 {percent(r.top1_interval.half_width)}",
        "Top-5, %": lambda r: percent(r.top5),
        "Mean ms": lambda r: significant(r.time_ms.mean),
        "Mean mJ": lambda r: significant(None if r.energy_mj is None else r.energy_mj.mean),
        "Points": lambda r: signed(r.vs_best_single.points),
        "Time": lambda r: change(r.vs_best_single.time_ratio),
    }
    if all(result.top5 == 1 for result in results):  # of five classes or fewer
        del columns["Top-5, %"]
    if all(result.energy_mj is None for result in results):
        del columns["Mean mJ"]
    rows = [[_policy_name(result), *(cell(result) for cell in columns.values())] for result in results]
    caption = f"Points and time are compared with {short(best_single)}, the best single model"
    labelled = {_policy_name(result): marks[result.name] for result in results if result.name in marks}
    return Listing(caption, ["Policy", *columns], rows, marks=labelled)


def _policy_name(result: Result) -> str:
    """Return the policy's name, followed by the model if it runs the same one on every image."""
    is_one = result.always is not None and not result.name.startswith(SINGLE)
    return short(f"{result.name} (always {result.always})" if is_one else result.name, LONGEST)


def without_dominated(results: Sequence[Result], most: int, always_shown: Iterable[str]) -> list[Result]:
    """Return the results; if they are more than `most`, without some single models. always_shown: names to keep.

    All singles that a faster one equals or exceeds in accuracy go, then the least accurate until `most` results remain.
    """
    singles = [one for one in results if one.name.startswith(SINGLE) and one.name not in set(always_shown)]
    most_singles = most - (len(results) - len(singles))
    if len(singles) <= most_singles:
        return list(results)
    front = undominated((one.time_ms.mean, one.top1, one.name) for one in results if one.name.startswith(SINGLE))
    candidates = {name for *_, name in front} & {one.name for one in singles}
    shown = [name for *_, name in front if name in candidates][-most_singles:] if most_singles > 0 else []  # best last
    return [one for one in results if one not in singles or one.name in shown]


Point = tuple[float, float]  # mean time in ms, accuracy in percent


def cards(findings: Findings) -> list[tuple[str, Result, Result | None]]:
    """Return, for each policy with a status, the status, its result, and the result to compare it with or None."""
    marks, current = statuses(findings), findings.current
    has_other = current is not None and current.name != findings.winner
    return [
        (marks[result.name], result, current if has_other and result.name == findings.winner else None)
        for result in compared_results(findings)
        if result.name in marks
    ]


def trade_off(findings: Findings) -> Chart:
    """Return the chart of accuracy against time: a point for each policy, a line for offered operating points."""
    comparison, marks = findings.comparison, statuses(findings)
    series: dict[str, list[Point]] = {"Policies": [], "Single models": [], "Best possible choice": []}
    points, labels = {result.name: _point(result) for result in compared_results(findings)}, {}
    for name, point in points.items():
        series_name = "Best possible choice" if name == "oracle" else "Policies"
        series["Single models" if name.startswith(SINGLE) else series_name].append(point)
        labels[_label(name, marks.get(name), comparison)] = point
    front_lines: dict[str, list[Point]] = {}
    for name, result in comparison.front.items():
        front_lines.setdefault(f"Operating points of {name.partition(':')[0]}", []).append(_point(result))
    shown = {name: series_points for name, series_points in series.items() if series_points}
    return Chart(
        f"{metric_name(findings.calibration.images.labels_from)} against time",
        "A line joins operating points: under load, and for a request that names one, any of them answers."
        if front_lines
        else "Better policies are higher and further to the left.",
        "Mean time, ms",
        f"{metric_name(findings.calibration.images.labels_from)}, %",
        shown | {name: sorted(series_points) for name, series_points in front_lines.items()},
        front_lines,
        labels,
        [_label(name, mark, comparison) for name, mark in marks.items()],
    )


def _point(result: Result) -> Point:
    return result.time_ms.mean, 100 * result.top1


def _label(name: str, mark: str | None, comparison: Comparison) -> str:
    """Return the label of a policy, with its status if it has one; a policy fitted earlier shows its status alone."""
    if mark is not None and name not in comparison.policies:
        return mark
    return f"{short(name.removeprefix(SINGLE))} ({mark})" if mark else short(name.removeprefix(SINGLE))
