"""The part of the report on unsure answers: how often answers are wrong if the least sure are refused."""

from __future__ import annotations

from jetsel.calibrate.judge.findings import DoubtFindings
from jetsel.calibrate.judge.metrics import undominated
from jetsel.calibrate.judge.words import level, percent, promises_in_words, short, significant, why_missing
from jetsel.calibrate.report.parts import Cell, ChartFigure, Table, lines
from jetsel.policies.promise import Promise, Promises

LONGEST = 120  # characters of a class
LEAST = 0.5  # percent of wrong answers: where the chart begins, at half of the lowest level
NOTHING = "\u2013"  # of a level that is not promised


def heading(doubt: DoubtFindings) -> str:
    """The heading, with the promise of the default policy that is nearest to 5 %."""
    kept = next(iter(doubt.promises.values())).kept
    answered = next((percent(one.answered) for one in kept if one.wrong_at_most == doubt.level), None)
    if doubt.level is None or answered is None:
        return "Unsure answers: no error rate can be promised"
    return f"Unsure answers: at most {level(doubt.level)} wrong, {answered} % of the images answered"


def promises(doubt: DoubtFindings) -> Table:
    """The levels of the default policy and of the best single model."""
    columns = ["Wrong at most", "Images answered, %", "Answers wrong, %", "Time saved by early refusal, %"]
    columns += ["Unknown images refused, %"] if doubt.unknown_images else []
    groups = {short(name, LONGEST): _levels(found, len(columns) - 1) for name, found in doubt.promises.items()}
    caption = "Promised shares of wrong answers"
    return Table("promises", caption, [*columns, "Promised"], groups, (len(columns),))


def _levels(found: Promises, cells: int) -> list[list[Cell]]:
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


def scores(doubt: DoubtFindings) -> str:
    """Which score decides, and what each of them would answer."""
    answered = ", ".join(f"{name} {percent(share)} %" for name, share in doubt.by_score.items())
    said = (
        f"Answers are ranked by this score: {doubt.score}. Mean share of images answered with each score, over all "
        f"levels: {answered}. Another score replaces the probability only if clearly more images are answered with it."
    )
    if "distance" not in doubt.by_score:
        said += " The distance was not tried: it needs the cheapest model on every image, but the policy may skip it."
    return said


def trade_off(doubt: DoubtFindings) -> ChartFigure | None:
    """The most images that are answered at each share of wrong answers; None if hardly any answer is wrong."""
    series, rows = {}, []
    for name, points in doubt.curves.items():
        best = undominated((100 * wrong, 100 * answered, "") for answered, wrong in points)
        series[short(name)] = [(wrong, answered) for wrong, answered, _ in best if wrong >= LEAST]
        rows += [[name, significant(wrong), significant(answered)] for wrong, answered, _ in best]
    kept = [one for found in doubt.promises.values() for one in found.kept]
    promised = {"Promised": [(100 * one.wrong_at_most, 100 * one.answered) for one in kept]}
    if not any(series.values()):
        return None
    x, y = "Answers wrong, %", "Images answered, %"
    drawing = lines(x, y, series | promised if kept else series, promised, {})
    numbers = Table(
        "errors-numbers", "Share of images answered at each share of wrong answers", ["Policy", x, y], {"": rows}
    )
    title, finding = "Images answered against wrong answers", promises_in_words(*next(iter(doubt.promises.items())))
    return ChartFigure("errors", title, finding, drawing, numbers)


def refused_classes(doubt: DoubtFindings) -> Table | None:
    """The classes that are refused most; None if nothing is."""
    rows: list[list[Cell]] = [
        [short(one.name, LONGEST), f"{one.images:,}", percent(one.refused)] for one in doubt.classes if one.refused
    ]
    if doubt.level is None or not rows:
        return None
    caption = f"Classes that are refused most, at {level(doubt.level)}"
    return Table("refused-classes", caption, ["Class", "Images", "Refused, %"], {"": rows})
