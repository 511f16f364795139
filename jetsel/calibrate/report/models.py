"""Which models are worth having: how often each is the optimum, what the next adds, how many (Figures 5, 6 and 11)."""

from __future__ import annotations

from jetsel.calibrate.findings import Comparison
from jetsel.calibrate.report.bars import Bar, bars
from jetsel.calibrate.report.drawing import absent, figure
from jetsel.calibrate.report.markup import Node
from jetsel.calibrate.report.tables import numbers_behind
from jetsel.calibrate.report.words import Words, in_percent, joined, number_of, percent, signed
from jetsel.premodel import Step

NONE_RIGHT = "none of them"


def figure_5(comparison: Comparison, words: Words) -> Node:
    """How often each model is the optimum."""
    key, title = f"{comparison.criterion}-figure-5", "Figure 5: how often each model is the optimum"
    if not comparison.optimal:
        return absent(key, title, "It was not counted.")
    ranked = sorted(comparison.optimal.items(), key=lambda item: -item[1])
    first, share = ranked[0]
    none = max(0.0, 1 - sum(comparison.optimal.values()))
    finding = (
        f"{first} is most often the cheapest model that {words.is_right}: on {in_percent(share)} of the photographs. "
        f"No model {words.is_right} on {in_percent(none)}."
    )
    rows = [Bar(name, 100 * s, percent(s), strong=name == first) for name, s in ranked]
    rows.append(Bar(NONE_RIGHT, 100 * none, percent(none)))
    numbers = [[row.name, row.text] for row in rows]
    columns = ["Model", "Share of the photographs, %"]
    behind = numbers_behind(key, title, columns, numbers)
    return figure(key, title, finding, bars("Share of the photographs, %", rows), behind)


def figure_6(comparison: Comparison, words: Words) -> list[Node]:
    """How often each candidate is right where the models before it are not: one panel for each step of Algorithm 1."""
    title = "Figure 6: what the next model adds"
    if not comparison.steps:
        return [absent(f"{comparison.criterion}-figure-6", title, "Algorithm 1 was not run.")]
    before: list[str] = []
    panels = []
    for number, step in enumerate(comparison.steps, 1):
        panels.append(_step(f"{comparison.criterion}-figure-6-{number}", number, step, before, words))
        before.append(step.added)
    return panels


def _step(key: str, number: int, step: Step, before: list[str], words: Words) -> Node:
    title = f"Figure 6, step {number}: {'add' if step.kept else 'stop before'} {step.added}"
    ranked = sorted(step.accuracy.items(), key=lambda item: -item[1])
    if not ranked:
        return absent(key, title, "No candidate was left.")
    rows = [Bar(name, 100 * share, percent(share), strong=name == step.added) for name, share in ranked]
    quantity = f"{words.accuracy} on what failed so far, %" if before else "How often it is the optimum, %"
    behind = numbers_behind(key, title, ["Model", quantity], [[r.name, r.text] for r in rows])
    return figure(key, title, _told(step, before, words), bars(quantity, rows), behind)


def _told(step: Step, before: list[str], words: Words) -> str:
    share = in_percent(step.accuracy.get(step.added))
    if not before:
        found = f"{step.added} is the optimum most often ({share})."
    else:
        failing, fail = number_of(step.failing, "photograph"), "fails" if len(before) == 1 else "fail"
        found = f"Of the {failing} on which {joined(before)} {fail}, {step.added} {words.is_right} on {share}."
    gain = f"It adds {signed(step.gain_points).removeprefix('+')} points: one of the models {words.is_right} on "
    gain += f"{in_percent(step.total)} of all."
    return f"{found} {gain}" + ("" if step.kept else " That is too little, so it is left out.")
