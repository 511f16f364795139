"""What choosing costs, and how far each model's confidence can be trusted."""

from __future__ import annotations

from jetsel.calibrate.findings import Comparison
from jetsel.calibrate.report.parts import Table
from jetsel.calibrate.report.words import SPACE, in_percent, percent, significant


def chooser(comparison: Comparison) -> Table:
    """What the chain's choice costs, and when it pays."""
    chain, spent = comparison.chain, comparison.policies["chain"]
    pays = "so it could pay" if chain.chooser_ms < chain.pays_below_ms else "so it cannot pay"
    rows = {
        "Neighbours (k)": str(chain.k),
        "Models, in order": " \u2192 ".join(chain.links),
        "Time of features and choice": f"{significant(chain.chooser_ms)}{SPACE}ms",
        "Share of the chain's time (the paper: 20 %)": in_percent(chain.chooser_ms / spent.time_ms.mean),
        "A perfect choice saves at most": f"{significant(chain.pays_below_ms)}{SPACE}ms, {pays}",
    }
    if spent.energy_mj is not None and chain.chooser_mj is not None:
        rows["Energy of features and choice"] = f"{significant(chain.chooser_mj)}{SPACE}mJ"
        share = chain.chooser_mj / spent.energy_mj.mean
        rows["Share of the chain's energy (the paper: 11 %)"] = in_percent(share)
    listed = [[name, value] for name, value in rows.items()]
    return Table(f"{comparison.criterion}-chooser", "What the choice costs", ["What", "Value"], {"": listed}, (1,))


def reliability(comparison: Comparison) -> Table:
    """How far each model's confidence is from how often it is right, before and after temperature scaling."""
    rows = [
        [one.model, significant(one.temperature), percent(one.error_before), percent(one.error_after)]
        for one in comparison.reliability
    ]
    columns = ["Model", "Temperature", "Error before, points", "Error after, points"]
    caption = "How far each model's confidence is from how often it is right (expected calibration error)"
    return Table(f"{comparison.criterion}-reliability", caption, columns, {"": rows})
