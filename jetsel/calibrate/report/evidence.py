"""What the findings stand on: photographs on which policies differ, those left out, the conditions and the models."""

from __future__ import annotations

from collections.abc import Sequence

from jetsel.calibrate.findings import Differing, Findings
from jetsel.calibrate.report.markup import Child, Node, el
from jetsel.calibrate.report.tables import table
from jetsel.calibrate.report.words import Words, number_of, significant


def differing(found: Sequence[Differing], words: Words) -> list[Node]:
    """The photographs, and each policy's answer to them; a right answer is written as such."""
    if not found:
        return [el("p", "The policies gave the same answers to every photograph that was kept.")]
    policies = list(dict.fromkeys(name for one in found for name in one.answers))
    rows = [
        [el("span", one.path, class_="path"), one.label, *[_answer(one, name, words) for name in policies]]
        for one in found
    ]
    labels = "Label" if words.labels_from is None else f"Answer of {words.labels_from}"
    columns = ["Photograph", labels, *policies]
    caption = f"{number_of(len(found), 'photograph')} to which policies give different answers"
    return [table("differing", caption, columns, rows, text=range(1, len(columns)))]


def _answer(one: Differing, policy: str, words: Words) -> Node | str:
    answer = one.answers.get(policy)
    if answer is None:
        return "none"
    if answer == one.label:
        return el(
            "span",
            answer,
            " ",
            el("span", "\u2713 right" if words.labels_from is None else "\u2713 agrees", class_="good"),
        )
    return answer


def measured(findings: Findings, words: Words) -> list[Node]:
    """Conditions, the photographs left out and the models, each as a table or the sentence that there is none."""
    return [_conditions(findings), _skipped(findings), _models(findings, words)]


def _conditions(findings: Findings) -> Node:
    if not findings.conditions:
        return el("p", "No conditions were recorded.")
    rows = [[name, value] for name, value in findings.conditions.items()]
    return table("conditions", "Conditions", ["What", "Value"], rows, text=[1])


def _skipped(findings: Findings) -> Node:
    if not findings.skipped:
        return el("p", "No photograph was left out.")
    rows = [[reason, f"{count:,}"] for reason, count in findings.skipped.items()]
    counted = table("skipped", "Photographs left out", ["Reason", "Photographs"], rows)
    if not findings.left_out:
        return counted
    listed = table(
        "left-out", "The first of them", ["Photograph", "Reason"], [list(one) for one in findings.left_out], text=[1]
    )
    return el("div", counted, el("details", el("summary", "Which they are"), listed))


def _models(findings: Findings, words: Words) -> Node:
    models = dict.fromkeys([*findings.costs_ms, *findings.models_sha256])
    if not models:
        return el("p", "No model was recorded.")
    rows: list[list[Child]] = [
        [
            model,
            significant(findings.costs_ms.get(model)),
            *([_energy(findings, model)] if findings.energies_mj else []),
            el("code", findings.models_sha256.get(model, "unknown: it was not recorded")),
        ]
        for model in models
    ]
    energy = ["Energy above idle power, mJ"] if findings.energies_mj else []
    columns = ["Model", words.time("Time of one photograph"), *energy, "SHA-256"]
    return table("models", "Models", columns, rows, text=[len(columns) - 1])


def _energy(findings: Findings, model: str) -> str:
    half = findings.energies_half_mj.get(model)
    within = "" if half is None else f" \u00b1 {significant(half)}"
    return f"{significant(findings.energies_mj.get(model))}{within}"
