"""The models and the premodel: who is the optimum, what each adds, links, neighbours, doubt, and confidence."""

from __future__ import annotations

import math

from jetsel.calibrate.findings import ChainStudy, Comparison, Reliability
from jetsel.calibrate.report.charts import Bar, lines
from jetsel.calibrate.report.parts import Figure, Table, bar_figure, dot_figure, line_figure
from jetsel.calibrate.report.words import SPACE, Words, in_percent, joined, percent, ratio, signed, significant
from jetsel.premodel import Step

PAPER_K = 5  # Taylor et al., section 3.3
PAPER_LINKS = (0.958, 0.801, 0.723)  # section 5.2
NONE_RIGHT = "none of them"


def figure_5(comparison: Comparison, words: Words) -> Figure:
    """How often each model is the optimum (Figure 5)."""
    key, title = f"{comparison.criterion}-figure-5", "Figure 5: how often each model is the optimum"
    if not comparison.optimal:
        return Figure(key, title, "It was not counted.")
    ranked = sorted(comparison.optimal.items(), key=lambda item: -item[1])
    first, share = ranked[0]
    none = max(0.0, 1 - sum(comparison.optimal.values()))
    finding = f"{first} is most often the cheapest model that {words.is_right}: on {in_percent(share)} of the "
    finding += f"photographs. No model {words.is_right} on {in_percent(none)}."
    rows = [Bar(name, 100 * s, percent(s), strong=name == first) for name, s in ranked]
    rows.append(Bar(NONE_RIGHT, 100 * none, percent(none)))
    return bar_figure(key, title, finding, "Model", "Share of the photographs, %", rows)


def figure_6(comparison: Comparison, words: Words) -> Table | None:
    """What each step of Algorithm 1 adds (Figure 6); None where it was not run."""
    columns = [
        "Step",
        "Photographs on which all so far fail",
        f"The added one {words.is_right} on so many of them, %",
        "Gained, points",
        f"One of them {words.is_right}, %",
    ]
    rows = [_step(number, step) for number, step in enumerate(comparison.steps, 1)]
    title = "Figure 6: what the next model adds"
    return Table(f"{comparison.criterion}-figure-6", title, columns, {"": rows}) if rows else None


def _step(number: int, step: Step) -> list[str]:
    name = f"{number}. add {step.added}" if step.kept else f"stop before {step.added}, which gains too little"
    share = percent(step.accuracy.get(step.added))
    return [name, f"{step.failing:,}", share, signed(step.gain_points), percent(step.total)]


def links(comparison: Comparison) -> Figure:
    """How often each link's own yes or no is right, beside the paper's."""
    key, title = f"{comparison.criterion}-links", "How often each link of the chain is right"
    found = comparison.chain.links
    if not found:
        return Figure(key, title, "The chain has no links.")
    paper = [PAPER_LINKS[i] if i < len(PAPER_LINKS) else math.nan for i in range(len(found))]
    shares = {
        "This link": [link.accuracy for link in found],
        "Always the commoner answer": [link.base_rate for link in found],
        "The paper's": paper,
    }
    better = [link.model for link in found if link.accuracy > link.base_rate]
    finding = "No link is right more often than always giving the commoner answer."
    if better:
        finding = f"The yes or no of {joined(better)} is right more often than always giving the commoner answer."
    series = {name: [(100 * share,) * 3 for share in of_links] for name, of_links in shares.items()}
    return dot_figure(key, title, finding, "Link", "Right yes or no, %", [link.model for link in found], series)


def neighbours(comparison: Comparison) -> Figure:
    """What each number of neighbours gives."""
    chain, key, title = comparison.chain, f"{comparison.criterion}-k", "How many neighbours"
    points = sorted((float(k), 100 * share) for k, share in chain.k_accuracy.items())
    if not points:
        return Figure(key, title, f"k is {chain.k}; no other was tried.")
    paper = chain.k_accuracy.get(PAPER_K)
    finding = f"Cross-validation chose k = {chain.k}, with which the optimum is named most often"
    finding += f" ({in_percent(chain.k_accuracy.get(chain.k))}); the paper's {PAPER_K} gives {in_percent(paper)}."
    rules = {f"the paper: {PAPER_K}": float(PAPER_K), f"chosen: {chain.k}": float(chain.k)}
    return line_figure(key, title, finding, "Neighbours (k)", "The optimum is named, %", points, rules)


def distance(comparison: Comparison) -> Figure:
    """How often a choice is right at each distance from the neighbours, and where doubt begins (section 6)."""
    chain, key, title = comparison.chain, f"{comparison.criterion}-distance", "How far the neighbours may be"
    points = [(far, 100 * share) for far, share in chain.distance_confidence]
    limit = chain.distance_limit
    doubt = "There is no limit: no choice is in doubt for its distance."
    if limit is not None:
        doubt = f"Beyond {significant(limit)} the choice is in doubt."
    if not points:
        return Figure(key, title, f"It was not measured. {doubt}")
    nearest, farthest = (in_percent(chain.distance_confidence[i][1]) for i in (0, -1))
    finding = f"{nearest} of the choices are right where the neighbours are nearest, {farthest} where farthest. {doubt}"
    rules = {} if limit is None else {f"in doubt beyond {significant(limit)}": limit}
    return line_figure(key, title, finding, "Distance up to which", "Choices that are right, %", points, rules)


def chooser(comparison: Comparison, words: Words) -> Table:
    """What the chooser costs, when it pays, and how well it tells easy from hard."""
    chain, spent = comparison.chain, comparison.policies.get("chain")
    rows = [[name, value] for name, value in _chooser(chain, words).items()]
    if spent is not None:
        share = chain.chooser_ms / spent.time_ms.mean
        rows.append(["Its share of the chain's time (the paper: 20 %)", in_percent(share)])
    if spent is not None and spent.energy_mj is not None and chain.chooser_mj is not None:
        rows.append(["Its energy", f"{significant(chain.chooser_mj)}{SPACE}mJ"])
        share = chain.chooser_mj / spent.energy_mj.mean
        rows.append(["Its share of the chain's energy (the paper: 11 %)", in_percent(share)])
    return Table(f"{comparison.criterion}-chooser", "The chooser", ["What", "Value"], {"": rows}, (1,))


def _chooser(chain: ChainStudy, words: Words) -> dict[str, str]:
    could = "it could" if chain.chooser_ms < chain.pays_below_ms else "it could not"
    return {
        "Neighbours (k)": str(chain.k),
        "Links": " \u2192 ".join(link.model for link in chain.links) or "none",
        "Features and choice": words.ms(chain.chooser_ms),
        "A perfect one pays below": f"{words.ms(chain.pays_below_ms)}: {could}",
        "Memory": f"{chain.chooser_bytes:,}{SPACE}bytes",
        f"The cheapest model {words.is_right}: told by the neighbours (AUC)": ratio(chain.auc_cheapest),
        f"The cheapest model {words.is_right}: told by its own confidence (AUC)": ratio(chain.auc_confidence),
    }


def reliability(comparison: Comparison, words: Words) -> list[Figure]:
    """How often each model is right at each confidence, before and after temperature scaling."""
    return [
        _reliability(f"{comparison.criterion}-reliability-{number}", found, words)
        for number, found in enumerate(comparison.reliability, 1)
    ]


def _reliability(key: str, found: Reliability, words: Words) -> Figure:
    title = f"Confidence of {found.model}"
    finding = f"Scaled by a temperature of {significant(found.temperature)}, its confidence errs by "
    finding += f"{percent(found.error_after)} points instead of {percent(found.error_before)} "
    finding += "(expected calibration error). On the dashed line it would be exact."
    bins = {"After scaling": found.after, "Before": found.before}
    series = {name: [(mean, share) for mean, share, _ in of_bins] for name, of_bins in bins.items()}
    drawing = lines("Confidence", f"Share on which it {words.is_right}", series, height=250, diagonal=True)
    columns = ["Confidence, %", f"It {words.is_right}, %", "Photographs"]
    groups = {
        name: [[percent(mean), percent(share), f"{count:,}"] for mean, share, count in of_bins]
        for name, of_bins in bins.items()
    }
    return Figure(key, title, finding, drawing, Table(f"{key}-numbers", f"{title}: the numbers", columns, groups))
