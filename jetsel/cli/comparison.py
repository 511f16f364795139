"""The gist of a report for the terminal: policies as a table, and what was found in sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from jetsel.cli.terminal import milliseconds, table

if TYPE_CHECKING:
    from rich.table import Table

    from jetsel.calibrate.findings import Findings, Result
    from jetsel.wire import Criterion

OF_ENERGY = (">mean mJ", ">times the best's")  # the columns that stand where energy is known


def in_words(findings: Findings) -> list[str]:
    """Return the sentences of the criterion that decides, and what the chain was fitted to."""
    comparison = findings.comparisons[findings.decides]
    links = " -> ".join(comparison.chain.links)
    fitted = f"chain: {links}; k = {comparison.chain.k}; features: {', '.join(findings.features)}."
    return [*comparison.sentences, fitted]


def results_table(criterion: Criterion, results: Iterable[Result], default: str | None = None) -> Table:
    """Return a row for each: accuracy, time, energy where it is known, and on how many photographs each model ran.

    'beside a coin': the points over the best mix of two single models in the same mean time.
    """
    found = list(results)
    columns = _columns(criterion, default)
    if all(result.energy_mj is None for result in found):
        columns = {name: cell for name, cell in columns.items() if name not in OF_ENERGY}
    if all(result.top5 == 1 for result in found):  # of five classes or fewer
        columns.pop(">top-5 %")
    shown = table(*columns)
    for result in found:
        shown.add_row(*(cell(result) for cell in columns.values()))
    return shown


def _name(result: Result, default: str | None) -> str:
    """The policy, and whether it answers by default, or does no more than one model."""
    is_single = result.name.startswith("single:")
    name = result.name if is_single or result.always is None else f"{result.name} (always {result.always})"
    return f"{name} (default)" if result.name == default else name


def _columns(criterion: Criterion, default: str | None) -> dict[str, Callable[[Result], str]]:
    """A column's name -> a result's cell in it."""
    return {
        criterion: lambda r: _name(r, default),
        ">top-1 %": lambda r: f"{100 * r.top1:.2f} ± {50 * (r.top1_interval.high - r.top1_interval.low):.2f}",
        ">top-5 %": lambda r: f"{100 * r.top5:.2f}",
        ">F1 %": lambda r: f"{100 * r.f1:.1f}",
        ">mean ms": lambda r: milliseconds(r.time_ms.mean),
        ">p95 ms": lambda r: milliseconds(r.time_ms.p95),
        ">times the best": lambda r: f"{r.vs_best_single.time_ratio:.2f}",
        ">beside a coin": lambda r: _known(r.points_over_coin(criterion), "+.2f", "-"),
        OF_ENERGY[0]: lambda r: _known(r.energy_mj and r.energy_mj.mean, ".3g"),
        OF_ENERGY[1]: lambda r: _known(r.vs_best_single.energy_ratio, ".2f"),
        "runs": lambda r: ", ".join(f"{m} {100 * share:.0f} %" for m, share in r.runs.items() if share >= 0.005),
    }


def _known(value: float | None, form: str, otherwise: str = "unknown") -> str:
    return otherwise if value is None else format(value, form)
