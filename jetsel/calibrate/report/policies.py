"""The policies and bounds of one criterion, in numbers: the gist, then the rest about answers, time and energy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from jetsel.calibrate.findings import Against, Comparison, Interval, Result, Spread
from jetsel.calibrate.report.markup import Child, Node, el
from jetsel.calibrate.report.tables import Row, folded, grouped
from jetsel.calibrate.report.words import UNKNOWN, Words, percent, percent_interval, ratio, signed, significant
from jetsel.wire import Criterion

Columns: TypeAlias = "dict[str, Callable[[Result], Child]]"  # a column's name -> a result's cell in it

TERMS = (
    ("Optimum", "the cheapest model that {right} on a photograph."),
    ("Agreement with the optimum", "of the photographs on which some model {right}, how many the optimum answered."),
    ("Missed", "the policy {wrong} although some model {right}; a share of all photographs."),
    ("In doubt", "the photograph is unlike those that the chooser was fitted on, so the fallback model answered."),
    ("Geometric mean", "of the scores in the folds; one bad fold pulls it down."),
    ("Best single", "the one model that {right} most often, run on every photograph."),
    ("Oracle", "the optimum of every photograph, known beforehand: no choice of one model can be better."),
    ("Points", "right answers in a hundred, more (+) or fewer (\u2212) than the other's."),
    ("Ratio", "the policy's own time or energy over the other's: below 1 is less."),
)


def score(result: Result, criterion: Criterion) -> float:
    """The share that counts under the criterion."""
    return result.top1 if criterion == "top1" else result.top5


def ordered(comparison: Comparison) -> dict[str, Result]:
    """Every policy and bound by name, the fastest first: the order, and the numbering, of the tables and charts.

    A bound that has a policy's name is told apart by '(bound)'.
    """
    bounds = {f"{n} (bound)" if n in comparison.policies else n: r for n, r in comparison.bounds.items()}
    return dict(sorted((comparison.policies | bounds).items(), key=lambda item: item[1].time_ms.mean))


def unmeasured(results: dict[str, Result]) -> str | None:
    """Why no energy is known, where none is of any result."""
    if any(result.energy_mj is not None for result in results.values()):
        return None
    reasons = dict.fromkeys(_reason(result) for result in results.values())
    return "; ".join(reasons)


def policy_tables(comparison: Comparison, words: Words, winner: str) -> list[Node]:
    """The tables, each with the policies first and the bounds beneath, and what their columns mean."""
    results = ordered(comparison)
    if not results:
        return [el("p", "No policy was compared under this criterion.")]
    captions = {
        "gist": (f"How often each policy {words.is_right}, and in what time", _gist(words)),
        "answers": ("More on the answers", _answers()),
        "costs": ("More on time and energy", _costs(results, words)),
        "runs": ("How many of the photographs each model ran on", _runs(results)),
    }
    tables = [
        _table(f"{comparison.criterion}-{key}", caption, columns, results, comparison, winner)
        for key, (caption, columns) in captions.items()
        if columns
    ]
    terms = [part for name, text in TERMS for part in (el("dt", name), el("dd", _said(text, words)))]
    reason = unmeasured(results)
    energy = [el("p", f"Energy is {UNKNOWN}: {reason}.")] if reason else []
    return [*tables, *energy, folded("What the columns mean", el("dl", *terms))]


def _table(
    key: str, caption: str, columns: Columns, results: dict[str, Result], comparison: Comparison, winner: str
) -> Node:
    def row(name: str, result: Result) -> Row:
        label = el("span", name, el("span", "winner", class_="tag") if name == winner else None, class_="name")
        return [label, *[cell(result) for cell in columns.values()]]

    policies = [row(name, result) for name, result in results.items() if name in comparison.policies]
    bounds = [row(name, result) for name, result in results.items() if name not in comparison.policies]
    return grouped(key, caption, ["Policy", *columns], {"Policies": policies, "Bounds": bounds})


def _gist(words: Words) -> Columns:
    return {
        f"{words.score('top1')}, %": lambda r: _with(percent(r.top1), percent_interval(r.top1_interval)),
        f"{words.score('top5')}, %": lambda r: _with(percent(r.top5), percent_interval(r.top5_interval)),
        words.time("Mean time"): lambda r: _with(significant(r.time_ms.mean), _limits(r.time_interval)),
        "Top-1 beside the best single, points": lambda r: signed(r.vs_best_single.top1_points),
        "Top-5 beside the best single, points": lambda r: signed(r.vs_best_single.top5_points),
        _noisy("Time over the best single's", words): lambda r: ratio(r.vs_best_single.time_ratio),
        "Top-1 beside the oracle, points": lambda r: signed(r.vs_oracle.top1_points),
        "Top-5 beside the oracle, points": lambda r: signed(r.vs_oracle.top5_points),
        _noisy("Time over the oracle's", words): lambda r: ratio(r.vs_oracle.time_ratio),
    }


def _answers() -> Columns:
    return {
        "Precision, %": lambda r: percent(r.precision),
        "Recall, %": lambda r: percent(r.recall),
        "F1, %": lambda r: percent(r.f1),
        "Agreement with the optimum, %": lambda r: percent(r.agreement),
        "Missed, %": lambda r: percent(r.missed),
        "In doubt, %": lambda r: percent(r.in_doubt),
        "Geometric mean, %": lambda r: percent(r.geometric_mean),
    }


def _costs(results: dict[str, Result], words: Words) -> Columns:
    times: Columns = {
        words.time("Median time (p50)"): lambda r: significant(r.time_ms.p50),
        words.time("95 % within (p95)"): lambda r: significant(r.time_ms.p95),
    }
    return times if unmeasured(results) else times | _energies()


def _energies() -> Columns:
    return {
        "Mean energy, mJ": lambda r: _energy(r, lambda spread: spread.mean),
        "Energy p50, mJ": lambda r: _energy(r, lambda spread: spread.p50),
        "Energy p95, mJ": lambda r: _energy(r, lambda spread: spread.p95),
        "Energy over the best single's": lambda r: _energy_ratio(r, r.vs_best_single),
        "Energy over the oracle's": lambda r: _energy_ratio(r, r.vs_oracle),
    }


def _runs(results: dict[str, Result]) -> Columns:
    def share(model: str) -> Callable[[Result], Child]:
        return lambda result: percent(result.runs.get(model, 0.0))

    models = dict.fromkeys(model for result in results.values() for model in result.runs)
    return {f"{model}, %": share(model) for model in models}


def _with(value: str, interval: str) -> Node:
    """A value with its 95 % interval beneath it."""
    return el("span", value, " ", el("span", interval, class_="interval"))


def _limits(interval: Interval) -> str:
    return f"{significant(interval.low)} to {significant(interval.high)}"


def _energy(result: Result, which: Callable[[Spread], float]) -> str:
    if result.energy_mj is None:
        return f"{UNKNOWN}: {_reason(result)}"
    return significant(which(result.energy_mj))


def _reason(result: Result) -> str:
    return result.energy_reason or "no reason was recorded"


def _energy_ratio(result: Result, against: Against) -> str:
    return UNKNOWN if result.energy_mj is None else ratio(against.energy_ratio)


def _noisy(name: str, words: Words) -> str:
    return f"{name} (noisy)" if words.noisy is not None else name


def _said(text: str, words: Words) -> str:
    return text.format(right=words.is_right, wrong=words.is_wrong)
