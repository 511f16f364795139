"""The premodel: other ways to build it (Figures 9 and 10), its neighbours, its links, and when it is in doubt."""

from __future__ import annotations

import math

from jetsel.calibrate.findings import ChainStudy, Comparison
from jetsel.calibrate.report.dots import Dot, Panel, dots
from jetsel.calibrate.report.drawing import absent, figure
from jetsel.calibrate.report.markup import Node
from jetsel.calibrate.report.plot import Rule, Series, frame, plot
from jetsel.calibrate.report.tables import numbers_behind, table
from jetsel.calibrate.report.words import SPACE, Words, in_percent, joined, percent, ratio, significant

PAPER_K = 5  # Taylor et al., section 3.3
PAPER_LINKS = (0.958, 0.801, 0.723)  # section 5.2


def neighbours(comparison: Comparison) -> Node:
    """What each number of neighbours gives."""
    chain, key, title = comparison.chain, f"{comparison.criterion}-k", "How many neighbours"
    points = sorted((float(k), 100 * share) for k, share in chain.k_accuracy.items())
    if not points:
        return absent(key, title, f"k is {chain.k}; no other was tried.")
    finding = f"Cross-validation chose k = {chain.k}, with which the optimum is named most often"
    finding += f" ({in_percent(chain.k_accuracy.get(chain.k))})" if chain.k in chain.k_accuracy else ""
    paper = chain.k_accuracy.get(PAPER_K)
    finding += (
        f"; the paper's {PAPER_K} gives {in_percent(paper)}." if paper is not None else f"; the paper took {PAPER_K}."
    )
    rules = [Rule(float(chain.k), f"chosen: {chain.k}")]
    if chain.k != PAPER_K and paper is not None:
        rules.append(Rule(float(PAPER_K), f"the paper: {PAPER_K}"))
    score = "The optimum is named, %"
    drawing = plot(frame("Neighbours (k)", score, points, height=150), [Series("", points)], rules=rules, whole=True)
    rows = [[f"{k:g}", f"{share:.1f}"] for k, share in points]
    return figure(key, title, finding, drawing, numbers_behind(key, title, ["k", score], rows))


def links(comparison: Comparison) -> Node:
    """How often each link's own yes or no is right, beside the paper's."""
    key, title = f"{comparison.criterion}-links", "How often each link of the chain is right"
    found = comparison.chain.links
    if not found:
        return absent(key, title, "The chain has no links.")
    paper = [PAPER_LINKS[i] if i < len(PAPER_LINKS) else math.nan for i in range(len(found))]
    series = {
        "This link": [Dot(100 * link.accuracy) for link in found],
        "Always the commoner answer": [Dot(100 * link.base_rate) for link in found],
        "The paper's": [Dot(100 * share) for share in paper],
    }
    better = [link.model for link in found if link.accuracy > link.base_rate]
    finding = (
        f"The yes or no of {joined(better)} is right more often than always giving the commoner answer."
        if better
        else "No link is right more often than always giving the commoner answer."
    )
    rows = [
        [
            link.model,
            percent(link.accuracy),
            percent(link.base_rate),
            percent(theirs) if math.isfinite(theirs) else "no such link",
        ]
        for link, theirs in zip(found, paper, strict=True)
    ]
    columns = ["Link", "Right, %", "Always the commoner answer, %", "The paper's, %"]
    drawing = dots([link.model for link in found], [Panel("Right yes or no, %", series)])
    return figure(key, title, finding, drawing, numbers_behind(key, title, columns, rows))


def distance(comparison: Comparison) -> Node:
    """How often a choice is right at each distance from the neighbours, and where doubt begins (section 6)."""
    chain, key, title = comparison.chain, f"{comparison.criterion}-distance", "How far the neighbours may be"
    points = [(far, 100 * share) for far, share in chain.distance_confidence]
    limit = chain.distance_limit
    doubt = (
        "There is no limit: no choice is in doubt."
        if limit is None
        else f"Beyond {significant(limit)} the choice is in doubt."
    )
    if not points:
        return absent(key, title, f"It was not measured. {doubt}")
    nearest, farthest = (in_percent(chain.distance_confidence[i][1]) for i in (0, -1))
    finding = f"{nearest} of the choices are right where the neighbours are nearest, {farthest} where farthest. {doubt}"
    quantity = "Choices that are right, %"
    x = "Distance up to which"
    across = [*points, *([(limit, points[0][1])] if limit is not None else [])]
    rules = [Rule(limit, f"in doubt beyond {significant(limit)}")] if limit is not None else []
    drawing = plot(frame(x, quantity, across, height=150), [Series("", points)], rules=rules)
    rows = [[significant(far), f"{share:.1f}"] for far, share in points]
    return figure(key, title, finding, drawing, numbers_behind(key, title, [x, quantity], rows))


def chooser(comparison: Comparison, words: Words) -> Node:
    """What the chooser costs, when it pays, and how well it tells easy from hard."""
    chain = comparison.chain
    spent = comparison.policies.get("chain")
    share = None if spent is None else chain.chooser_ms / spent.time_ms.mean
    energy = None if spent is None else spent.energy_mj
    of_energy = None if energy is None or chain.chooser_mj is None else chain.chooser_mj / energy.mean
    rows = [[name, value] for name, value in _chooser(chain, share, of_energy, words).items()]
    return table(f"{comparison.criterion}-chooser", "The chooser", ["What", "Value"], rows, text=[1])


def _chooser(chain: ChainStudy, share: float | None, of_energy: float | None, words: Words) -> dict[str, str]:
    could = chain.chooser_ms < chain.pays_below_ms
    energy = {
        "Their energy": f"{significant(chain.chooser_mj)}{SPACE}mJ",
        "Its share of the chain's energy (the paper: 11 %)": in_percent(of_energy),
    }
    return {
        "Neighbours (k)": str(chain.k),
        "Links": " \u2192 ".join(link.model for link in chain.links) or "none",
        "Features and choice": words.ms(chain.chooser_ms),
        "Its share of the chain's time (the paper: 20 %)": in_percent(share),
        **({} if chain.chooser_mj is None else energy),
        "A perfect one pays below": f"{words.ms(chain.pays_below_ms)}: {'it could' if could else 'it could not'}",
        "Memory": f"{chain.chooser_bytes:,}{SPACE}bytes",
        "In doubt beyond the distance": "no limit"
        if chain.distance_limit is None
        else significant(chain.distance_limit),
        f"The cheapest model {words.is_right}: told by the neighbours (AUC)": ratio(chain.auc_cheapest),
        f"The cheapest model {words.is_right}: told by its own confidence (AUC)": ratio(chain.auc_confidence),
    }
