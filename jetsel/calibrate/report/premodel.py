"""The models and the premodel: who is the optimum, what each adds, what choosing costs, and confidence."""

from __future__ import annotations

from jetsel.calibrate.findings import Chain, Comparison, Reliability
from jetsel.calibrate.report.charts import Bar, lines
from jetsel.calibrate.report.parts import Figure, Table, bar_figure
from jetsel.calibrate.report.words import SPACE, Words, in_percent, percent, signed, significant
from jetsel.premodel import Step

NONE_RIGHT = "none of them"


def figure_5(comparison: Comparison, words: Words) -> Figure:
    """How often each model is the optimum (Figure 5)."""
    key, title = f"{comparison.criterion}-figure-5", "Figure 5: how often each model is the optimum"
    ranked = sorted(comparison.optimal.items(), key=lambda item: -item[1])
    first, share = ranked[0]
    none = max(0.0, 1 - sum(comparison.optimal.values()))
    finding = f"{first} is most often the cheapest model that {words.is_right}: on {in_percent(share)} of the "
    finding += f"photographs. No model {words.is_right} on {in_percent(none)}."
    rows = [Bar(name, 100 * s, percent(s), strong=name == first) for name, s in ranked]
    rows.append(Bar(NONE_RIGHT, 100 * none, percent(none)))
    return bar_figure(key, title, finding, "Model", "Share of the photographs, %", rows)


def figure_6(comparison: Comparison, words: Words) -> Table:
    """What each step of Algorithm 1 adds (Figure 6)."""
    columns = [
        "Step",
        "Photographs on which all so far fail",
        f"The added one {words.is_right} on so many of them, %",
        "Gained, points",
        f"One of them {words.is_right}, %",
    ]
    rows = [_step(number, step) for number, step in enumerate(comparison.steps, 1)]
    title = "Figure 6: what the next model adds"
    return Table(f"{comparison.criterion}-figure-6", title, columns, {"": rows})


def _step(number: int, step: Step) -> list[str]:
    name = f"{number}. add {step.added}" if step.kept else f"stop before {step.added}, which gains too little"
    share = percent(step.accuracy[step.added])
    return [name, f"{step.failing:,}", share, signed(step.gain_points), percent(step.total)]


def chooser(comparison: Comparison, words: Words) -> Table:
    """What the chooser costs, and when it pays."""
    chain, spent = comparison.chain, comparison.policies["chain"]
    rows = [[name, value] for name, value in _chooser(chain, words).items()]
    share = chain.chooser_ms / spent.time_ms.mean
    rows.append(["Its share of the chain's time (the paper: 20 %)", in_percent(share)])
    if spent.energy_mj is not None and chain.chooser_mj is not None:
        rows.append(["Its energy", f"{significant(chain.chooser_mj)}{SPACE}mJ"])
        share = chain.chooser_mj / spent.energy_mj.mean
        rows.append(["Its share of the chain's energy (the paper: 11 %)", in_percent(share)])
    return Table(f"{comparison.criterion}-chooser", "The chooser", ["What", "Value"], {"": rows}, (1,))


def _chooser(chain: Chain, words: Words) -> dict[str, str]:
    could = "it could" if chain.chooser_ms < chain.pays_below_ms else "it could not"
    return {
        "Neighbours (k)": str(chain.k),
        "Links": " \u2192 ".join(chain.links),
        "Features and choice": words.ms(chain.chooser_ms),
        "A perfect one pays below": f"{words.ms(chain.pays_below_ms)}: {could}",
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
