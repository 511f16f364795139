"""The page: a table of contents and the sections, in one file that asks nothing of the network and runs no script."""

from __future__ import annotations

from importlib import resources

from jetsel import __version__
from jetsel.calibrate.findings import Comparison, Findings
from jetsel.calibrate.report import confidence, evidence, models, premodel
from jetsel.calibrate.report.features import feature_section
from jetsel.calibrate.report.figure_8 import figure_8
from jetsel.calibrate.report.markup import Node, document, el
from jetsel.calibrate.report.policies import policy_tables
from jetsel.calibrate.report.trade_off import trade_off
from jetsel.calibrate.report.verdict import heading, verdict, warnings
from jetsel.calibrate.report.words import Words

NAMES = {"top1": "Top-1: the first answer counts", "top5": "Top-5: one of the first five answers counts"}
NOTHING_FROM_OUTSIDE = "default-src 'none'; style-src 'unsafe-inline'"  # and no script, whoever wrote it


def render(findings: Findings) -> str:
    """Return the report as the text of one HTML file, to be written as UTF-8.

    Nothing in the findings is read as markup; characters that a page cannot hold are replaced.
    """
    words = Words.of(findings)
    sections = _sections(findings, words)
    contents = [el("li", el("a", name, href=f"#{key}")) for key, (name, _) in sections.items()]
    body = el(
        "body",
        el("a", "Skip to the verdict", href="#main", class_="skip"),
        heading(findings),
        el("nav", el("h2", "Contents"), el("ol", *contents), aria_label="Contents"),
        el("main", *[_section(key, name, parts) for key, (name, parts) in sections.items()], id="main", tabindex=-1),
        el(
            "footer", el("p", f"Written by jetsel {__version__}. Figures are numbered as in Taylor et al., LCTES 2018.")
        ),
    )
    return document(_head(findings), body)


def _head(findings: Findings) -> Node:
    style = resources.files("jetsel.calibrate.report").joinpath("style.css").read_text("utf-8")
    return el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=NOTHING_FROM_OUTSIDE),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", f"Calibration of {findings.family}, {findings.created}"),
        el("style", style),
    )


def _sections(findings: Findings, words: Words) -> dict[str, tuple[str, list[Node]]]:
    """The key, the name and the content of each."""
    comparisons: dict[str, tuple[str, list[Node]]] = {
        comparison.criterion: (NAMES.get(name, name), _comparison(comparison, findings, words))
        for name, comparison in findings.comparisons.items()
    }
    if not comparisons:
        comparisons = {"comparison": ("Comparison", [el("p", "No policy was compared.")])}
    return {
        "verdict": ("Verdict", verdict(findings, words)),
        **comparisons,
        "features": ("Features of the premodel", [*warnings(words), *feature_section(findings.features, words)]),
        "differing-photographs": (
            "Photographs on which the policies differ",
            [*warnings(words), *evidence.differing(findings.differing, words)],
        ),
        "measured": ("How it was measured", [*warnings(words), *evidence.measured(findings, words)]),
    }


def _comparison(comparison: Comparison, findings: Findings, words: Words) -> list[Node]:
    winner = findings.defaults.get(comparison.criterion, findings.winner)
    parts: dict[str, list[Node]] = {
        "Policies and bounds": [
            trade_off(comparison, words, winner),
            *policy_tables(comparison, words, winner),
            el("div", *figure_8(comparison, words, winner), class_="figures two"),
        ],
        "Which models": [
            _figures(
                [
                    models.figure_5(comparison, words),
                    *models.figure_6(comparison, words),
                ]
            )
        ],
        "The premodel": [
            premodel.chooser(comparison, words),
            _figures(
                [
                    premodel.links(comparison),
                    premodel.neighbours(comparison),
                    premodel.distance(comparison),
                ]
            ),
        ],
        "Confidence of each model": [_figures(confidence.reliability(comparison, words))],
    }
    return [*warnings(words), *[node for name, nodes in parts.items() for node in (el("h3", name), *nodes)]]


def _figures(figures: list[Node]) -> Node:
    return el("div", *figures, class_="figures")


def _section(key: str, name: str, parts: list[Node]) -> Node:
    return el("section", el("h2", name, id=f"{key}-heading"), *parts, id=key, aria_labelledby=f"{key}-heading")
