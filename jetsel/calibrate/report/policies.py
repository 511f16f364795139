"""The policies and bounds of one criterion in numbers: answers, time and energy, and which models ran."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from jetsel.calibrate.findings import Comparison, Interval, Result
from jetsel.calibrate.report.parts import Cell, Table
from jetsel.calibrate.report.words import UNKNOWN, Words, percent, percent_interval, ratio, signed, significant
from jetsel.wire import Criterion

Columns: TypeAlias = "dict[str, Callable[[Result], Cell]]"  # a column's name -> a result's cell in it

TERMS = {
    "In doubt": "the photograph is unlike those that the chooser was fitted on, so the fallback model answered.",
    "Best single": "the one model that {right} most often, run on every photograph.",
    "Oracle": "the cheapest model that {right} on each photograph, known before: no choice can be better.",
    "A coin": "the best mix of two single models, dealt to the photographs at random, in the policy's own mean time. "
    "A policy that does not beat it knows nothing of the photographs.",
    "Points": "right answers in a hundred, more (+) or fewer (\u2212) than the other's.",
    "Ratio": "the policy's own time or energy over the other's: below 1 is less.",
}


def ordered(comparison: Comparison) -> dict[str, Result]:
    """Every policy and bound by name, the fastest first: the order, and the numbering, of the tables and charts."""
    return dict(sorted((comparison.policies | comparison.bounds).items(), key=lambda item: item[1].time_ms.mean))


def unmeasured(results: dict[str, Result]) -> str | None:
    """Why no energy is known, where none is of any result."""
    if any(result.energy_mj is not None for result in results.values()):
        return None
    return "; ".join(dict.fromkeys(_reason(result) for result in results.values()))


def terms(words: Words) -> dict[str, str]:
    """What the columns mean."""
    return {name: text.format(right=words.is_right) for name, text in TERMS.items()}


def policy_tables(comparison: Comparison, words: Words) -> list[Table]:
    """The tables, each with the policies first and the bounds beneath."""
    results = ordered(comparison)
    contents = {
        "gist": (
            f"How often each policy {words.is_right}, and in what time",
            _summary_columns(comparison.criterion, words, has_top5=any(r.top5 < 1 for r in results.values())),
        ),
        "answers": ("More on the answers", _answers()),
        "costs": ("More on time and energy", _costs(results, words)),
        "runs": ("How many of the photographs each model ran on, %", _runs(results)),
    }
    return [
        Table(f"{comparison.criterion}-{key}", caption, ["Policy", *columns], _groups(comparison, results, columns))
        for key, (caption, columns) in contents.items()
    ]


def _groups(comparison: Comparison, results: dict[str, Result], columns: Columns) -> dict[str, list[list[Cell]]]:
    groups: dict[str, list[list[Cell]]] = {"Policies": [], "Bounds": []}
    for name, result in results.items():
        row: list[Cell] = [name, *(cell(result) for cell in columns.values())]
        groups["Policies" if name in comparison.policies else "Bounds"].append(row)
    return groups


def _summary_columns(criterion: Criterion, words: Words, *, has_top5: bool) -> Columns:
    noisy = "" if words.noisy is None else " (noisy)"
    columns: Columns = {
        f"{words.score('top1')}, %": lambda r: (percent(r.top1), percent_interval(r.top1_interval)),
        f"{words.score('top5')}, %": lambda r: (percent(r.top5), percent_interval(r.top5_interval)),
        words.time("Mean time"): lambda r: (significant(r.time_ms.mean), _limits(r.time_interval)),
        "Top-1 beside the best single, points": lambda r: signed(r.vs_best_single.top1_points),
        "Top-5 beside the best single, points": lambda r: signed(r.vs_best_single.top5_points),
        f"Time over the best single's{noisy}": lambda r: ratio(r.vs_best_single.time_ratio),
        "Beside a coin, points": lambda r: signed(r.points_over_coin(criterion)),
        "Top-1 beside the oracle, points": lambda r: signed(r.vs_oracle.top1_points),
        "Top-5 beside the oracle, points": lambda r: signed(r.vs_oracle.top5_points),
        f"Time over the oracle's{noisy}": lambda r: ratio(r.vs_oracle.time_ratio),
    }
    of_five = ("Top-5", words.score("top5"))
    return {name: cell for name, cell in columns.items() if has_top5 or not name.startswith(of_five)}


def _answers() -> Columns:
    return {
        "Precision, %": lambda r: percent(r.precision),
        "Recall, %": lambda r: percent(r.recall),
        "F1, %": lambda r: percent(r.f1),
        "In doubt, %": lambda r: percent(r.in_doubt),
    }


def _costs(results: dict[str, Result], words: Words) -> Columns:
    times: Columns = {
        words.time("Median time (p50)"): lambda r: significant(r.time_ms.p50),
        words.time("95 % within (p95)"): lambda r: significant(r.time_ms.p95),
    }
    if unmeasured(results) is not None:
        return times
    return times | {
        "Mean energy, mJ": lambda r: (
            f"{UNKNOWN}: {_reason(r)}" if r.energy_mj is None else significant(r.energy_mj.mean)
        ),
        "Energy p50, mJ": lambda r: significant(r.energy_mj and r.energy_mj.p50),
        "Energy p95, mJ": lambda r: significant(r.energy_mj and r.energy_mj.p95),
        "Energy over the best single's": lambda r: ratio(r.vs_best_single.energy_ratio),
        "Energy over the oracle's": lambda r: ratio(r.vs_oracle.energy_ratio),
    }


def _runs(results: dict[str, Result]) -> Columns:
    def share(model: str) -> Callable[[Result], Cell]:
        return lambda result: percent(result.runs.get(model, 0.0))

    return {model: share(model) for result in results.values() for model in result.runs}


def _limits(interval: Interval) -> str:
    """The ends of an interval of a time."""
    return f"{significant(interval.low)} to {significant(interval.high)}"


def _reason(result: Result) -> str:
    return result.energy_reason or "no reason was recorded"
