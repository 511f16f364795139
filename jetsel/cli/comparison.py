"""A comparison of policies as a table for the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.markup import escape

from jetsel.cli.terminal import milliseconds, table

if TYPE_CHECKING:
    from rich.table import Table

    from jetsel.calibrate.findings import Comparison, Result


def comparison_table(comparison: Comparison) -> Table:
    """Return a row for each policy and bound of a comparison."""
    return results_table(comparison.criterion, [*comparison.policies.values(), *comparison.bounds.values()])


def results_table(criterion: str, results: Iterable[Result]) -> Table:
    """Return a row for each: accuracy, time, and on how many of the photographs each model ran."""
    shown = table(criterion, ">top-1 %", ">top-5 %", ">F1 %", ">mean ms", ">p95 ms", ">times the best", "runs")
    for result in results:
        shown.add_row(*_row(result))
    return shown


def _row(result: Result) -> tuple[str, ...]:
    runs = ", ".join(f"{model} {100 * share:.0f} %" for model, share in result.runs.items() if share >= 0.005)
    half = 100 * (result.top1_interval.high - result.top1_interval.low) / 2
    return (
        escape(result.name),
        f"{100 * result.top1:.2f} ± {half:.2f}",
        f"{100 * result.top5:.2f}",
        f"{100 * result.f1:.1f}",
        milliseconds(result.time_ms.mean),
        milliseconds(result.time_ms.p95),
        f"{result.vs_best_single.time_ratio:.2f}",
        escape(runs),
    )
