"""MDInference (Ogden and Guo) simulated beside the paper: `python -m calibration.papers.mdinference`.

Writes Markdown into results/mdinference-simulated.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from calibration.papers.mdinference import figures
from calibration.papers.tables import table, written

SLA_MS = figures.SLA_MS
SOME = 20_000  # requests of each point of the figures
WHO = ("mdinference", "greedy")
TWINS = ("random", "related-random", "related-accurate", "mdinference")


def main() -> None:
    """Simulate, write and print."""
    parser = argparse.ArgumentParser(
        prog="python -m calibration.papers.mdinference", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--requests", type=int, default=1_000_000, help="of each row of Table IV (%(default)s)")
    parser.add_argument("--seed", type=int, default=7, help="the first one (%(default)s)")
    parser.add_argument("--seeds", type=int, default=10, help="how many (%(default)s)")
    options = parser.parse_args()
    seeds, some = range(options.seed, options.seed + options.seeds), min(options.requests, SOME)
    slas = [figures.by_sla(some, seed) for seed in seeds]
    written(
        "mdinference-simulated",
        "\n".join(
            [
                f"{options.requests:,} requests a row of Table IV, {some:,} a point of the figures; the mean over "
                f"seeds {seeds[0]} to {seeds[-1]} (the least to the most of them).\n",
                table_iv([figures.table_iv(options.requests, seed) for seed in seeds]),
                by_sla(slas),
                usage(slas),
                by_variation([figures.by_variation(some, seed) for seed in seeds]),
                at_home([figures.by_sla_at_home(some, seed) for seed in seeds]),
                twenty(figures.twenty(options.seed)),
                f"Spanning subset (VI): {', '.join(figures.spanning_names())}.\n",
            ]
        ),
    )


def table_iv(found: Sequence[dict[str, Any]]) -> str:
    """Return reliance and accuracy by network and policy, the paper's where it has them; found: by seed."""
    rows = []
    for network, policies in found[0].items():
        for policy, row in policies.items():
            cells = [network, policy]
            for key in ("reliance_pct", "accuracy_pct"):
                cells += [_percent(row["paper"][key]), over([one[network][policy][key] for one in found], 2)]
            rows.append(" | ".join(cells))
    columns = "network | policy | reliance, paper % | here % | accuracy, paper % | here %"
    return table("Table IV: 250 ms, with duplication", columns, rows)


def by_sla(found: Sequence[list[dict[str, Any]]]) -> str:
    """Return Figures 3a and 6; found: by seed."""
    rows = []
    for same in zip(*found, strict=True):
        cells = [over([row[who][key] for row in same]) for key in ("latency_ms", "accuracy_pct") for who in WHO]
        cells.insert(2, over([row["less_latency_pct"] for row in same]))
        cells += [over([row[f"fictional {name}"]["accuracy_pct"] for row in same]) for name in TWINS]
        rows.append(" | ".join([f"{same[0]['sla_ms']:g}", *cells]))
    columns = (
        "deadline, ms | latency, ms | static greedy's | less, % | accuracy, % | static greedy's "
        "| with the twin: random | related random | related accurate | MDInference"
    )
    return table("Figures 3a and 6: a network of 100 ± 50 ms, without duplication", columns, rows)


def usage(found: Sequence[list[dict[str, Any]]]) -> str:
    """Return Figure 3b: which share of the requests each model gets, by deadline; found: by seed."""
    names = list(found[0][0]["usage"])
    rows = []
    for same in zip(*found, strict=True):
        shares = [[row["usage"][name] for row in same] for name in names]
        cells = [f"{sum(each) / len(each):.1f}" if any(each) else "never" for each in shares]
        rows.append(" | ".join([f"{same[0]['sla_ms']:g}", *cells]))
    title = "Figure 3b: models used, % of the requests in the mean over the seeds; the network of Figure 3a"
    return table(title, f"deadline, ms | {' | '.join(names)}", rows)


def by_variation(found: Sequence[list[dict[str, Any]]]) -> str:
    """Return Figures 4 and 5, models by the first seed; found: by seed."""
    rows = [
        f"{100 * same[0]['cv']:.0f} | {same[0]['sla_ms']:g} | {over([row['attainment_pct'] for row in same])} "
        f"| {over([row['accuracy_pct'] for row in same])} | "
        + ", ".join(f"{name} {share:.0f}" for name, share in sorted(same[0]["usage"].items(), key=lambda one: -one[1]))
        for same in zip(*found, strict=True)
    ]
    columns = "variation, % of the mean | deadline, ms | in time, % | accuracy, % | models used, %"
    return table("Figures 4 and 5: a network of 100 ms in the mean", columns, rows)


def at_home(found: Sequence[list[dict[str, Any]]]) -> str:
    """Return Figure 7; found: by seed."""
    policies = [name for name in found[0][0] if name != "sla_ms"]
    rows = []
    for same in zip(*found, strict=True):
        cells = [f"{same[0]['sla_ms']:g}"]
        for name in policies:
            cells += [over([row[name][key] for row in same]) for key in ("accuracy_pct", "reliance_pct")]
        rows.append(" | ".join(cells))
    columns = " | ".join(["deadline, ms", *(f"{name}, % | on the device, %" for name in policies)])
    return table("Figure 7: residential network, accuracy and reliance on the device", columns, rows)


def twenty(found: list[dict[str, Any]]) -> str:
    """Return Figure 8."""
    rows = [
        f"{row['network_ms']:.0f} | {row['model']} | {row['total_ms']:.0f} | {'no' if row['on_device'] else 'yes'}"
        for row in found
    ]
    columns = "network, ms | model | in all, ms | in time"
    return table(f"Figure 8: twenty requests, residential network, {SLA_MS:g} ms", columns, rows)


def over(values: Sequence[float], digits: int = 1) -> str:
    """Return the mean over seeds, and between which values all are, unless they are equal as printed."""
    mean, least, most = (f"{one:.{digits}f}" for one in (sum(values) / len(values), min(values), max(values)))
    return mean if least == most else f"{mean} ({least} to {most})"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    main()
