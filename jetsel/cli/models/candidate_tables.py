"""What became of candidates, as tables and sentences for the terminal and the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jetsel.calibrate.report import Listing
from jetsel.cli.terminal import milliseconds, table

if TYPE_CHECKING:
    from rich.table import Table

    from jetsel.calibrate.candidates import Judged
    from jetsel.calibrate.findings import Interval
    from jetsel.cli.models.optimizing import Optimized


def tables_of(found: Optimized) -> list[Listing]:
    """Return the models, the best policies, how each candidate was made, and those that are not there."""
    recipes = [[name, fact.recipe] for name, fact in found.facts.items() if fact.recipe is not None]
    failed = [[name, reason] for name, reason in found.failed.items()]
    models = ["top-1 %", "points below the original", "agrees %", "ms", "MB", "MB gzipped", "million operations"]
    engines = ["TensorRT ms"] if isinstance(found.engines, dict) else []
    policies = ["policy", "top-1 %", "ms", "its models"]
    return [
        Listing(
            f"Models compared with {found.verdict.parent}, on {found.verdict.photographs:,} held-out images",
            ["model", *models, *engines, "wanted by"],
            [_row(one, found) for one in found.verdict.models],
            (len(models) + len(engines) + 1,),
        ),
        Listing("The best policy without and with candidates", ["", *policies], _trade_rows(found), (1, 4)),
        Listing("How each was made", ["candidate", "recipe"], recipes, (1,)),
        Listing("Not made", ["candidate", "reason"], failed, (1,)),
    ]


def drawn(listing: Listing) -> Table:
    """Return a table for the terminal."""
    _, columns, rows, text = listing
    shown = table(columns[0], *(name if place in text else f">{name}" for place, name in enumerate(columns[1:], 1)))
    shown.title = listing.caption
    for row in rows:
        shown.add_row(*row)
    return shown


def sentences(found: Optimized) -> list[str]:
    """Say which candidates are wanted, and what that gives."""
    verdict = found.verdict
    new = [one for one in verdict.models if one.name not in verdict.served]
    if not verdict.entered:
        said = [
            f"none of {len(new)} candidates is worth adding: each is slower, or less accurate, than an existing model"
        ]
    else:
        said = [f"{len(verdict.entered)} of {len(new)} candidates are worth adding: {', '.join(verdict.entered)}"]
    if verdict.trade is not None:
        trade = verdict.trade
        word = "would replace" if trade.is_better else "would not replace"
        without = f"{trade.before}, the best policy without candidates"
        said.append(f"with candidates, {trade.after} {word} {without}: {trade.reason}")
    said.append(f"Algorithm 1 chooses {' -> '.join(verdict.algorithm_1)}")
    if isinstance(found.engines, str):
        said.append(f"no times by TensorRT: {found.engines}")
    if found.noisy is not None:
        said.append(f"the times are noisy: {found.noisy}")
    return said


def _row(one: Judged, found: Optimized) -> list[str]:
    fact = found.facts[one.name]
    half = 50 * (one.top1_interval.high - one.top1_interval.low)
    places = {"front": one.in_front, "Algorithm 1": one.in_algorithm_1, "best policy": one.in_policy}
    wanted = ", ".join(name for name, is_there in places.items() if is_there) or "nothing"
    engines = [] if isinstance(found.engines, str) else [_device_ms(found.engines.get(one.name))]
    return [
        one.name,
        f"{100 * one.top1:.2f} ± {half:.2f}",
        f"{one.drop:+.2f} ({_to(one.drop_interval)})",
        f"{100 * one.agreement:.1f}",
        milliseconds(one.mean_ms),
        f"{fact.bytes / 1e6:.2f}",
        f"{fact.gzipped_bytes / 1e6:.2f}",
        "-" if fact.operations is None else f"{fact.operations / 1e6:.1f}",
        *engines,
        one.left_out or wanted,
    ]


def _device_ms(told: float | str | None) -> str:
    return milliseconds(told) if isinstance(told, float) else "-"


def _trade_rows(found: Optimized) -> list[list[str]]:
    trade = found.verdict.trade
    if trade is None:
        return []
    before = ["without", trade.before, f"{100 * trade.before_top1:.2f}", milliseconds(trade.before_ms), ""]
    after = ["with", trade.after, f"{100 * trade.after_top1:.2f}", milliseconds(trade.after_ms)]
    return [before, [*after, ", ".join(trade.models)]]


def _to(interval: Interval) -> str:
    return f"{interval.low:+.2f} to {interval.high:+.2f}"
