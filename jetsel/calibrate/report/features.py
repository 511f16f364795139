"""The premodel's features: which matter most, what is lost without each, how many to keep (Figures 7, 12 and 13)."""

from __future__ import annotations

from jetsel.calibrate.findings import FeatureStudy
from jetsel.calibrate.report.charts import Bar
from jetsel.calibrate.report.parts import Figure, bar_figure, line_figure
from jetsel.calibrate.report.words import Words, in_percent, number_of, percent, signed

TOP = 5  # Figure 7 shows five


def feature_figures(study: FeatureStudy, words: Words) -> list[Figure]:
    """The three figures."""
    return [_figure_7(study), _figure_12(study), _figure_13(study, words)]


def _figure_7(study: FeatureStudy) -> Figure:
    key, title = "figure-7", "Figure 7: the five most important features"
    kept = {name: points for name, points in study.importance.items() if name in study.chosen}
    ranked = sorted(kept.items(), key=lambda item: -item[1])[:TOP]
    whole = sum(points for points in kept.values() if points > 0)
    if not ranked or whole <= 0:
        return Figure(key, title, "No chosen feature is known to raise the accuracy.")
    shares = [(name, max(0.0, points) / whole) for name, points in ranked]
    finding = f"{shares[0][0]} matters most: {in_percent(shares[0][1])} of what all chosen features give."
    rows = [Bar(name, 100 * share, percent(share), strong=name == shares[0][0]) for name, share in shares]
    return bar_figure(key, title, finding, "Feature", "Share of what all chosen give, %", rows)


def _figure_12(study: FeatureStudy) -> Figure:
    key, title = "figure-12", "Figure 12: accuracy lost without each feature"
    if not study.importance:
        return Figure(key, title, "It was not measured.")
    ranked = sorted(study.importance.items(), key=lambda item: -item[1])
    idle = [name for name, points in ranked if points <= 0]
    finding = f"Without {ranked[0][0]} the premodel loses {signed(ranked[0][1]).removeprefix('+')} points."
    if idle:
        finding += f" It loses nothing without {number_of(len(idle), 'feature')}: {', '.join(idle)}."
    rows = [Bar(name, points, signed(points), strong=name in study.chosen) for name, points in ranked]
    return bar_figure(key, title, finding, "Feature", "Points lost (chosen ones darker)", rows)


def _figure_13(study: FeatureStudy, words: Words) -> Figure:
    key, title = "figure-13", "Figure 13: how many features"
    found = sorted(study.counts)
    if not found:
        return Figure(key, title, "It was not measured.")
    best = max(found, key=lambda row: row[1])
    finding = f"The premodel's best is {in_percent(best[1])} with {number_of(best[0], 'feature')}; "
    finding += f"{len(study.chosen)} were chosen. Extracting and choosing takes {words.ms(found[0][2])} with "
    finding += f"{number_of(found[0][0], 'feature')} and {words.ms(found[-1][2])} with {found[-1][0]}."
    points = [(float(n), 100 * share) for n, share, _ in found]
    rules = {f"chosen: {len(study.chosen)}": float(len(study.chosen))}
    return line_figure(key, title, finding, "Features", f"{words.accuracy} of the premodel, %", points, rules)
