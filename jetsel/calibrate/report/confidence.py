"""Reliability diagrams: how often each model is right at each confidence, before and after temperature scaling."""

from __future__ import annotations

from jetsel.calibrate.findings import Comparison, Reliability
from jetsel.calibrate.report.drawing import absent, figure
from jetsel.calibrate.report.markup import Node
from jetsel.calibrate.report.plot import Frame, Series, plot
from jetsel.calibrate.report.tables import grouped
from jetsel.calibrate.report.ticks import Axis
from jetsel.calibrate.report.words import Words, percent, significant


def reliability(comparison: Comparison, words: Words) -> list[Node]:
    """One diagram for each model."""
    key = f"{comparison.criterion}-reliability"
    if not comparison.reliability:
        return [absent(key, "Reliability diagrams", "No model's confidence was calibrated.")]
    return [_diagram(f"{key}-{number}", found, words) for number, found in enumerate(comparison.reliability, 1)]


def _diagram(key: str, found: Reliability, words: Words) -> Node:
    title = f"Confidence of {found.model}"
    finding = (
        f"Scaled by a temperature of {significant(found.temperature)}, its confidence errs by "
        f"{percent(found.error_after)} points instead of {percent(found.error_before)} "
        f"(expected calibration error). On the dashed line it would be exact."
    )
    axes = Frame(
        Axis("Confidence", -0.03, 1.03, 40, 352), Axis(f"Share on which it {words.is_right}", -0.03, 1.03, 243, 23)
    )
    series = [
        Series("After scaling", [(mean, share) for mean, share, _ in found.after]),
        Series("Before", [(mean, share) for mean, share, _ in found.before]),
    ]
    columns = [
        "Confidence, %",
        f"{words.is_right.capitalize() if words.labels_from is None else words.accuracy}, %",
        "Photographs",
    ]
    groups = {
        name: [[percent(mean), percent(share), f"{count:,}"] for mean, share, count in bins]
        for name, bins in (("Before scaling", found.before), ("After scaling", found.after))
    }
    numbers = grouped(f"{key}-numbers", f"{title}: the numbers, by bin", columns, groups)
    return figure(key, title, finding, plot(axes, series, diagonal=True), numbers)
