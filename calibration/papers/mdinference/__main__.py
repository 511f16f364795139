"""Table IV and Figures 3 to 8 of MDInference beside ours: `python -m calibration.papers.mdinference`.

Prints Markdown. Needs no images: the paper's models, networks and selections are simulated.
"""

from __future__ import annotations

import argparse
from typing import Any

from calibration.papers.mdinference import figures
from calibration.papers.tables import table

FIGURES_REQUESTS = 20_000
FICTIONAL = ("random", "related-random", "related-accurate", "mdinference")


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(
        prog="python -m calibration.papers.mdinference", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--requests", type=int, default=1_000_000, help="for each row of Table IV (%(default)s)")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    some, seed = min(options.requests, FIGURES_REQUESTS), options.seed
    print(_table_iv(figures.table_iv(options.requests, seed)))
    print(_by_sla(figures.by_sla(some, seed)))
    print(_by_variation(figures.by_variation(some, seed)))
    print(_at_home(figures.by_sla_at_home(some, seed)))
    print(f"Spanning subset (VI): {', '.join(figures.spanning_names())}.\n")
    on_device = sum(row["on_device"] for row in figures.twenty(seed))
    print(f"Of 20 requests at 250 ms, residential (Figure 8), {on_device} were answered on the device.")


def _table_iv(networks: dict[str, Any]) -> str:
    rows = []
    for network, policies in networks.items():
        for policy, row in policies.items():
            pairs = ((row[key], row["paper"][key]) for key in ("reliance_pct", "accuracy_pct"))
            rows.append(" | ".join([network, policy, *(_percent(value) for pair in pairs for value in pair)]))
    columns = "network | policy | on the device % | paper | accuracy % | paper"
    return table("Table IV: 250 ms, with duplication", columns, rows)


def _by_sla(found: list[dict[str, Any]]) -> str:
    rows = []
    for row in found:
        ours, greedy = row["mdinference"], row["greedy"]
        values = (
            ours["latency_ms"],
            greedy["latency_ms"],
            row["less_latency_pct"],
            row["paper_less_latency_pct"],
            ours["accuracy_pct"],
            greedy["accuracy_pct"],
            *(row[f"fictional {name}"]["accuracy_pct"] for name in FICTIONAL),
        )
        rows.append(" | ".join([f"{row['sla_ms']:g}", *map(_percent, values)]))
    columns = "SLA ms | ms | greedy's ms | less % | paper | accuracy % | greedy's % | " + " | ".join(FICTIONAL)
    title = "Figures 3 and 6: network of 100 +- 50 ms; the last four columns: accuracy % with NasNet Fictional"
    return table(title, columns, rows)


def _by_variation(found: list[dict[str, Any]]) -> str:
    rows = []
    for row in found:
        used = ", ".join(f"{name} {share:.0f}" for name, share in sorted(row["usage"].items(), key=lambda one: -one[1]))
        shares = map(_percent, (row["attainment_pct"], row["accuracy_pct"]))
        rows.append(" | ".join([f"{100 * row['cv']:.0f}", f"{row['sla_ms']:g}", *shares, used]))
    columns = "variation % | SLA ms | in time % | accuracy % | models used, %"
    return table("Figures 4 and 5: MDInference, network of 100 ms in the mean", columns, rows)


def _at_home(found: list[dict[str, Any]]) -> str:
    policies = [name for name in found[0] if name != "sla_ms"]
    rows = []
    for row in found:
        cells = (f"{row[name]['accuracy_pct']:.1f} ({row[name]['reliance_pct']:.1f})" for name in policies)
        rows.append(" | ".join([f"{row['sla_ms']:g}", *cells]))
    return table("Figure 7: residential, accuracy % (on the device %)", " | ".join(["SLA ms", *policies]), rows)


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    main()
