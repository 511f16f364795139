"""The part of the report on promises: how often answers are wrong if the least sure are refused."""

from __future__ import annotations

from jetsel.artefact.promise import Promise, Promises
from jetsel.calibrate.judge.findings import PromiseFindings
from jetsel.calibrate.judge.metrics import undominated
from jetsel.calibrate.judge.words import level, percent, promises_in_words, short, significant, why_missing
from jetsel.calibrate.report.parts import Cell, ChartFigure, Table, lines

LONGEST = 120  # characters of a class
LEAST = 0.5  # percent of wrong answers: where the chart begins, at half of the lowest level
NOTHING = "\u2013"  # of a level that is not promised


def heading(found: PromiseFindings) -> str:
    """The heading, with the promise of the default policy that is nearest to 5 %."""
    kept = next(iter(found.by_policy.values())).kept
    answered = next((percent(one.answered) for one in kept if one.wrong_at_most == found.level), None)
    if found.level is None or answered is None:
        return "Promises: none can be made"
    return f"Promises: at most {level(found.level)} wrong, {answered} % of the images answered"


def levels(found: PromiseFindings) -> Table:
    """The levels of the default policy and of the best single model."""
    columns = ["Wrong at most", "Images answered, %", "Answers wrong, %", "Time saved by early refusal, %"]
    columns += ["Unknown images refused, %"] if found.unknown_images else []
    groups = {short(name, LONGEST): _rows(one, len(columns) - 1) for name, one in found.by_policy.items()}
    caption = "Promised shares of wrong answers"
    return Table("levels", caption, [*columns, "Promised"], groups, (len(columns),))


def _rows(found: Promises, cells: int) -> list[list[Cell]]:
    """A row for each level, by rising level. cells: those between the level and whether it is promised."""
    rows: dict[float, list[Cell]] = {}
    for missing in found.missing:
        row = [level(missing.wrong_at_most), *[NOTHING] * cells, f"no: {why_missing(missing)}"]
        rows[missing.wrong_at_most] = [*row]
    for one in found.kept:
        rows[one.wrong_at_most] = [level(one.wrong_at_most), *_shares(one)[:cells], "yes"]
    return [rows[key] for key in sorted(rows)]


def _shares(one: Promise) -> list[str]:
    shares = (one.answered, one.wrong, one.saved, one.unknown_refused)
    return [NOTHING if share is None else percent(share) for share in shares]


def trade_off(found: PromiseFindings) -> ChartFigure | None:
    """The most images that are answered at each share of wrong answers; None if hardly any answer is wrong."""
    series, rows = {}, []
    for name, points in found.curves.items():
        best = undominated((100 * wrong, 100 * answered, "") for answered, wrong in points)
        series[short(name)] = [(wrong, answered) for wrong, answered, _ in best if wrong >= LEAST]
        rows += [[name, significant(wrong), significant(answered)] for wrong, answered, _ in best]
    kept = [one for promises in found.by_policy.values() for one in promises.kept]
    promised = {"Promised": [(100 * one.wrong_at_most, 100 * one.answered) for one in kept]}
    if not any(series.values()):
        return None
    x, y = "Answers wrong, %", "Images answered, %"
    drawing = lines(x, y, series | promised if kept else series, promised, {})
    numbers = Table(
        "errors-numbers", "Share of images answered at each share of wrong answers", ["Policy", x, y], {"": rows}
    )
    title, finding = "Images answered against wrong answers", promises_in_words(*next(iter(found.by_policy.items())))
    return ChartFigure("errors", title, finding, drawing, numbers)


def refused_classes(found: PromiseFindings) -> Table | None:
    """The classes that are refused most; None if nothing is."""
    rows: list[list[Cell]] = [
        [short(one.name, LONGEST), f"{one.images:,}", percent(one.refused)] for one in found.classes if one.refused
    ]
    if found.level is None or not rows:
        return None
    caption = f"Classes that are refused most, at {level(found.level)}"
    return Table("refused-classes", caption, ["Class", "Images", "Refused, %"], {"": rows})
