"""MDInference (Ogden and Guo) simulated beside the paper: `python -m calibration.papers.mdinference`.

Writes Markdown into results/mdinference-simulated.md.
"""

from __future__ import annotations

import argparse
from typing import Any

from calibration.papers.mdinference import figures
from calibration.papers.tables import table, written

SLA_MS = figures.SLA_MS
SOME = 20_000  # requests of each point of the figures


def main() -> None:
    """Simulate, write and print."""
    parser = argparse.ArgumentParser(
        prog="python -m calibration.papers.mdinference", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--requests", type=int, default=1_000_000, help="of each row of Table IV (%(default)s)")
    parser.add_argument("--seed", type=int, default=7, help="%(default)s")
    options = parser.parse_args()
    seed, some = options.seed, min(options.requests, SOME)
    written(
        "mdinference-simulated",
        "\n".join(
            [
                f"{options.requests:,} requests a row of Table IV, {some:,} a point of the figures, seed {seed}.\n",
                table_iv(figures.table_iv(options.requests, seed)),
                by_sla(figures.by_sla(some, seed)),
                by_variation(figures.by_variation(some, seed)),
                at_home(figures.by_sla_at_home(some, seed)),
                twenty(figures.twenty(seed)),
                f"Spanning subset (VI): {', '.join(figures.spanning_names())}.\n",
            ]
        ),
    )


def table_iv(networks: dict[str, Any]) -> str:
    """Return reliance and accuracy by network and policy, the paper's where it has them."""
    rows = [
        " | ".join(
            [
                network,
                policy,
                *(
                    text
                    for key in ("reliance_pct", "accuracy_pct")
                    for text in (_percent(row["paper"][key]), _percent(row[key]))
                ),
            ]
        )
        for network, policies in networks.items()
        for policy, row in policies.items()
    ]
    columns = "network | policy | reliance, paper % | here % | accuracy, paper % | here %"
    return table("Table IV: 250 ms, with duplication", columns, rows)


def by_sla(found: list[dict[str, Any]]) -> str:
    """Return Figures 3 and 6."""
    rows = []
    for row in found:
        ours, greedy = row["mdinference"], row["greedy"]
        times = f"{ours['latency_ms']:.1f} | {greedy['latency_ms']:.1f} | {row['less_latency_pct']:.1f}"
        shares = f"{ours['accuracy_pct']:.1f} | {greedy['accuracy_pct']:.1f}"
        more = (row[f"fictional {name}"] for name in ("random", "related-random", "related-accurate", "mdinference"))
        cells = " | ".join(f"{one['accuracy_pct']:.1f}" for one in more)
        rows.append(f"{row['sla_ms']:g} | {times} | {shares} | {cells}")
    columns = (
        "deadline, ms | latency, ms | static greedy's | less, % | accuracy, % | static greedy's "
        "| with the twin: random | related random | related accurate | MDInference"
    )
    return table("Figures 3 and 6: a network of 100 ± 50 ms, without duplication", columns, rows)


def by_variation(found: list[dict[str, Any]]) -> str:
    """Return Figures 4 and 5."""
    rows = [
        f"{100 * row['cv']:.0f} | {row['sla_ms']:g} | {row['attainment_pct']:.1f} | {row['accuracy_pct']:.1f} | "
        + ", ".join(f"{name} {share:.0f}" for name, share in sorted(row["usage"].items(), key=lambda one: -one[1]))
        for row in found
    ]
    columns = "variation, % of the mean | deadline, ms | in time, % | accuracy, % | models used, %"
    return table("Figures 4 and 5: a network of 100 ms in the mean", columns, rows)


def at_home(found: list[dict[str, Any]]) -> str:
    """Return Figure 7."""
    policies = [name for name in found[0] if name != "sla_ms"]
    rows = [
        f"{row['sla_ms']:g} | "
        + " | ".join(f"{row[name]['accuracy_pct']:.1f} ({row[name]['reliance_pct']:.1f})" for name in policies)
        for row in found
    ]
    columns = f"deadline, ms | {' | '.join(policies)}"
    return table("Figure 7: residential network, accuracy % (reliance on the device %)", columns, rows)


def twenty(found: list[dict[str, Any]]) -> str:
    """Return Figure 8."""
    rows = [
        f"{row['network_ms']:.0f} | {row['model']} | {row['total_ms']:.0f} | {'no' if row['on_device'] else 'yes'}"
        for row in found
    ]
    columns = "network, ms | model | in all, ms | in time"
    return table(f"Figure 8: twenty requests, residential network, {SLA_MS:g} ms", columns, rows)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    main()
