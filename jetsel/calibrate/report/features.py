"""The premodel's features: which matter most, what is lost without each, how many to keep (Figures 7, 12 and 13)."""

from __future__ import annotations

from jetsel.calibrate.findings import FeatureStudy
from jetsel.calibrate.report.bars import Bar, bars
from jetsel.calibrate.report.drawing import absent, figure, stack
from jetsel.calibrate.report.markup import Node, el
from jetsel.calibrate.report.plot import Rule, Series, frame, plot
from jetsel.calibrate.report.tables import numbers_behind, table
from jetsel.calibrate.report.words import Words, in_percent, number_of, percent, ratio, signed, significant

TOP = 5  # Figure 7 shows five


def feature_section(study: FeatureStudy, words: Words) -> list[Node]:
    """Which features stayed, the figures, and which were dropped for telling the same."""
    chosen = ", ".join(study.chosen) or "none"
    return [
        el("p", f"Chosen: {chosen}."),
        el("div", _figure_7(study), _figure_12(study), _figure_13(study, words), class_="figures"),
        _removed(study),
    ]


def _figure_7(study: FeatureStudy) -> Node:
    key, title = "figure-7", "Figure 7: the five most important features"
    kept = {name: points for name, points in study.importance.items() if name in study.chosen}
    ranked = sorted(kept.items(), key=lambda item: -item[1])[:TOP]
    whole = sum(points for points in kept.values() if points > 0)
    if not ranked or whole <= 0:
        return absent(key, title, "No chosen feature is known to raise the accuracy.")
    shares = [(name, max(0.0, points) / whole) for name, points in ranked]
    finding = f"{shares[0][0]} matters most: {in_percent(shares[0][1])} of what all chosen features give."
    rows = [Bar(name, 100 * share, percent(share), strong=name == shares[0][0]) for name, share in shares]
    quantity = "Share of what all chosen features give, %"
    numbers = numbers_behind(key, title, ["Feature", quantity], [[r.name, r.text] for r in rows])
    return figure(key, title, finding, bars(quantity, rows), numbers)


def _figure_12(study: FeatureStudy) -> Node:
    key, title = "figure-12", "Figure 12: accuracy lost without each feature"
    if not study.importance:
        return absent(key, title, "It was not measured.")
    ranked = sorted(study.importance.items(), key=lambda item: -item[1])
    idle = [name for name, points in ranked if points <= 0]
    finding = f"Without {ranked[0][0]} the premodel loses {signed(ranked[0][1]).removeprefix('+')} points."
    if idle:
        finding += f" It loses nothing without {number_of(len(idle), 'feature')}: {', '.join(idle)}."
    rows = [Bar(name, points, signed(points), strong=name in study.chosen) for name, points in ranked]
    quantity = "Points lost without it (chosen ones darker)"
    numbers = [[row.name, row.text, "yes" if row.strong else "no"] for row in rows]
    columns = ["Feature", "Points lost without it", "Chosen"]
    behind = numbers_behind(key, title, columns, numbers, text=[2])
    return figure(key, title, finding, bars(quantity, rows), behind)


def _figure_13(study: FeatureStudy, words: Words) -> Node:
    key, title = "figure-13", "Figure 13: how many features"
    found = sorted(study.counts)
    if not found:
        return absent(key, title, "It was not measured.")
    accuracy = [(float(n), 100 * share) for n, share, _ in found]
    times = [(float(n), ms) for n, _, ms in found]
    best = max(found, key=lambda row: row[1])
    finding = f"The premodel's best is {in_percent(best[1])} with {number_of(best[0], 'feature')}; "
    finding += f"{len(study.chosen)} were chosen."
    rules = [Rule(float(len(study.chosen)), "chosen")] if study.chosen else []
    score, time = f"{words.accuracy} of the premodel, %", words.time("Extracting and choosing")
    drawing = stack(
        plot(frame("Features", score, accuracy, height=110), [Series("", accuracy)], rules=rules, whole=True),
        plot(frame("Features", time, times, height=110, zero=True), [Series("", times)], rules=rules, whole=True),
    )
    numbers = [[str(n), percent(share), significant(ms)] for n, share, ms in found]
    behind = numbers_behind(key, title, ["Features", score, time], numbers)
    return figure(key, title, finding, drawing, behind)


def _removed(study: FeatureStudy) -> Node:
    rows = [[name, beside, ratio(r)] for name, dropped in study.removed.items() for beside, r in dropped]
    if not rows:
        return el("p", "No feature was dropped for its correlation with another.")
    columns = ["Kept", "Dropped beside it", "Absolute correlation"]
    return table("removed", "Features dropped because another tells the same", columns, rows, text=[1])
