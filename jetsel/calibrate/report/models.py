"""What choosing costs, and how far each model's confidence is to be trusted."""

from __future__ import annotations

from jetsel.calibrate.findings import Chain, Comparison
from jetsel.calibrate.report.parts import Table
from jetsel.calibrate.report.words import SPACE, Words, in_percent, percent, significant


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


def reliability(comparison: Comparison) -> Table:
    """How far each model's confidence is from how often it is right, before and after temperature scaling."""
    rows = [
        [one.model, significant(one.temperature), percent(one.error_before), percent(one.error_after)]
        for one in comparison.reliability
    ]
    columns = ["Model", "Temperature", "Error before, points", "Error after, points"]
    caption = "Confidence: expected calibration error, before and after it is scaled by the temperature"
    return Table(f"{comparison.criterion}-reliability", caption, columns, {"": rows})
