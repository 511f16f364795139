"""The gist of a report for the terminal: policies as a table, and what was found in sentences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.markup import escape

from jetsel.calibrate.sentences import points_over_coin
from jetsel.cli.terminal import milliseconds, table

if TYPE_CHECKING:
    from rich.table import Table

    from jetsel.calibrate.findings import Comparison, Findings, Result


def comparison_table(comparison: Comparison) -> Table:
    """Return a row for each policy and bound of a comparison."""
    return results_table(comparison.criterion, [*comparison.policies.values(), *comparison.bounds.values()])


def in_words(findings: Findings) -> list[str]:
    """Return the sentences of the criterion that decides, and what the chain was fitted to."""
    comparison = findings.comparisons[findings.decides]
    links = " -> ".join(comparison.chain.links)
    fitted = f"chain: {links}; k = {comparison.chain.k}; features: {', '.join(findings.features)}."
    return [*comparison.sentences, fitted]


def results_table(criterion: str, results: Iterable[Result]) -> Table:
    """Return a row for each: accuracy, time, energy where it is known, and on how many photographs each model ran.

    'beside a coin': the points over the best mix of two single models in the same mean time.
    """
    found = list(results)
    metered = any(result.energy_mj is not None for result in found)
    energy = (">mean mJ", ">times the best's") if metered else ()
    columns = (
        ">top-1 %",
        ">top-5 %",
        ">F1 %",
        ">mean ms",
        ">p95 ms",
        ">times the best",
        ">beside a coin",
        *energy,
        "runs",
    )
    shown = table(criterion, *columns)
    for result in found:
        shown.add_row(*_row(result, criterion, metered=metered))
    return shown


def _row(result: Result, criterion: str, *, metered: bool) -> tuple[str, ...]:
    runs = ", ".join(f"{model} {100 * share:.0f} %" for model, share in result.runs.items() if share >= 0.005)
    coin = points_over_coin(result, criterion)
    half = 100 * (result.top1_interval.high - result.top1_interval.low) / 2
    return (
        escape(result.name),
        f"{100 * result.top1:.2f} ± {half:.2f}",
        f"{100 * result.top5:.2f}",
        f"{100 * result.f1:.1f}",
        milliseconds(result.time_ms.mean),
        milliseconds(result.time_ms.p95),
        f"{result.vs_best_single.time_ratio:.2f}",
        "-" if coin is None else f"{coin:+.2f}",
        *(_energy(result) if metered else ()),
        escape(runs),
    )


def _energy(result: Result) -> tuple[str, str]:
    """The mean, and what it is beside the best single model's."""
    ratio = result.vs_best_single.energy_ratio
    mean = "unknown" if result.energy_mj is None else f"{result.energy_mj.mean:.3g}"
    return mean, "unknown" if ratio is None else f"{ratio:.2f}"
