"""Figure 8: time, energy, accuracy, and precision, recall and F1 of every policy and bound."""

from __future__ import annotations

from jetsel.calibrate.findings import Comparison, Result
from jetsel.calibrate.report.bars import Bar, bars
from jetsel.calibrate.report.dots import Dot, Panel, dots
from jetsel.calibrate.report.drawing import absent, figure
from jetsel.calibrate.report.markup import Node
from jetsel.calibrate.report.policies import ordered, score, unmeasured
from jetsel.calibrate.report.tables import numbers_behind
from jetsel.calibrate.report.words import SPACE, Words, in_percent, percent, percent_interval, significant


def figure_8(comparison: Comparison, words: Words, winner: str) -> list[Node]:
    """Time, energy, accuracy, and precision, recall and F1 of every policy and bound (Figure 8)."""
    results = ordered(comparison)
    if not results:
        return []
    return [
        _times(comparison, results, words, winner),
        _energies(comparison, results, winner),
        _scores(comparison, results, words, winner),
        _averages(comparison, results, winner),
    ]


def _times(comparison: Comparison, results: dict[str, Result], words: Words, winner: str) -> Node:
    key, title = f"{comparison.criterion}-figure-8a", "Figure 8a: mean time"
    rows = [
        Bar(n, r.time_ms.mean, significant(r.time_ms.mean), r.time_interval.low, r.time_interval.high, n == winner)
        for n, r in results.items()
    ]
    names = list(results)
    least, most = words.ms(rows[0].value), words.ms(rows[-1].value)
    finding = f"The fastest is {names[0]} with {least}, the slowest {names[-1]} with {most}."
    quantity = words.time("Mean time")
    numbers = [[row.name, row.text, f"{significant(row.low)} to {significant(row.high)}"] for row in rows]
    behind = numbers_behind(key, title, ["Policy", quantity, "95 % interval"], numbers)
    return figure(key, title, finding, bars(quantity, rows), behind)


def _energies(comparison: Comparison, results: dict[str, Result], winner: str) -> Node:
    key, title = f"{comparison.criterion}-figure-8b", "Figure 8b: mean energy"
    reason = unmeasured(results)
    if reason is not None:
        return absent(key, title, f"Unknown: {reason}.")
    known = {name: r.energy_mj.mean for name, r in results.items() if r.energy_mj is not None}
    rows = [Bar(name, energy, significant(energy), strong=name == winner) for name, energy in known.items()]
    least = min(rows, key=lambda row: row.value)
    finding = f"The least is that of {least.name}: {least.text}{SPACE}mJ a photograph."
    unknown = [name for name in results if name not in known]
    if unknown:
        finding += f" Unknown: {', '.join(unknown)}."
    numbers = numbers_behind(key, title, ["Policy", "Mean energy, mJ"], [[row.name, row.text] for row in rows])
    return figure(key, title, finding, bars("Mean energy, mJ", rows), numbers)


def _scores(comparison: Comparison, results: dict[str, Result], words: Words, winner: str) -> Node:
    key, title = f"{comparison.criterion}-figure-8c", f"Figure 8c: {words.accuracy[0].lower()}{words.accuracy[1:]}"
    series = {
        "Top-1": [Dot(100 * r.top1, 100 * r.top1_interval.low, 100 * r.top1_interval.high) for r in results.values()],
        "Top-5": [Dot(100 * r.top5, 100 * r.top5_interval.low, 100 * r.top5_interval.high) for r in results.values()],
    }
    first = max(comparison.policies or results, key=lambda name: score(results[name], comparison.criterion))
    value = in_percent(score(results[first], comparison.criterion))
    finding = f"Of the policies, {first} {words.is_right} most often: {words.score(comparison.criterion)} {value}."
    rows = [
        [name, percent(r.top1), percent_interval(r.top1_interval), percent(r.top5), percent_interval(r.top5_interval)]
        for name, r in results.items()
    ]
    columns = ["Policy", f"{words.score('top1')}, %", "95 % interval", f"{words.score('top5')}, %", "95 % interval"]
    drawing = dots(list(results), [Panel(f"{words.accuracy}, %", series)], [winner])
    return figure(key, title, finding, drawing, numbers_behind(key, title, columns, rows))


def _averages(comparison: Comparison, results: dict[str, Result], winner: str) -> Node:
    key, title = f"{comparison.criterion}-figure-8d", "Figure 8d: precision, recall and F1"
    series = {
        "Precision": [Dot(100 * r.precision) for r in results.values()],
        "Recall": [Dot(100 * r.recall) for r in results.values()],
        "F1": [Dot(100 * r.f1) for r in results.values()],
    }
    first = max(comparison.policies or results, key=lambda name: results[name].f1)
    finding = f"Averaged over the classes, {first} has the best F1 of the policies: {in_percent(results[first].f1)}."
    rows = [[name, percent(r.precision), percent(r.recall), percent(r.f1)] for name, r in results.items()]
    columns = ["Policy", "Precision, %", "Recall, %", "F1, %"]
    drawing = dots(list(results), [Panel("Average over the classes, %", series)], [winner])
    return figure(key, title, finding, drawing, numbers_behind(key, title, columns, rows))
