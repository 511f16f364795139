"""`jetsel simulate`: what deadlines, a network and models give together, before anything is built."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jetsel.cli.options import ConfigFile, Json, print_json
from jetsel.errors import CalibrationError, ConfigError

if TYPE_CHECKING:
    from rich.table import Table

    from jetsel.policies.selection import Models

FIGURES_REQUESTS = 20_000


def simulate(
    network: Annotated[
        list[str] | None,
        typer.Option(
            help="university, residential, normal:MEAN,DEVIATION, lognormal:MEDIAN,SIGMA, two-state:GOOD,DEVIATION,BAD,"
            "DEVIATION,WORSENS,RECOVERS, or a file of times in ms, and bytes. Left out: the paper's experiments."
        ),
    ] = None,
    sla_ms: Annotated[list[float] | None, typer.Option(min=1, help="Deadlines; 250 unless named.")] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(help="Ways to select; each unless named, with --recording jetsel's own."),
    ] = None,
    family: Annotated[str | None, typer.Option(help="A calibrated family's models, in place of the paper's.")] = None,
    device: Annotated[str | None, typer.Option(help="Of the family, the model on the device; the fastest.")] = None,
    recording: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What your models said: predict for [edge] as it is configured.")
    ] = None,
    around_ms: Annotated[float, typer.Option(min=0, help="With --recording: what a request takes besides models.")] = 5,
    edge_factor: Annotated[float, typer.Option(min=0.001, help="And the edge's times beside the recorded ones.")] = 1.0,
    requests: Annotated[int, typer.Option(min=1, max=100_000_000, help="Of each simulation.")] = 1_000_000,
    seed: int = 7,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Simulate deadlines under a network: accuracy, and how often the model on the device must answer.

    Without options it prints the experiments of MDInference (Ogden and Guo), the paper's numbers beside ours. With
    --network it simulates yours, for the paper's models or a calibrated family's. With --recording, made by `jetsel
    calibrate` where all models are, it replays the policy of deadlines on those photographs, `[models] only` on the
    device and the models of `[edge]` there; --network may be what `jetsel edge trace` wrote.
    """
    _check(policy)
    if recording is not None:
        from jetsel.cli.prediction import predictions, show

        selections: Sequence[str | None] = policy or [None]
        asked = (network or ["university"], sla_ms or [250.0])
        found = predictions(recording, *asked, selections, family, config, around_ms, edge_factor, seed)
        print_json({"rows": found}) if json else show(found)
        return
    if network is None and family is None:
        _paper(requests, seed, json)
        return
    rows = _own(network or ["university"], sla_ms or [250.0], policy, family, device, requests, seed, config)
    if json:
        print_json({"rows": rows})
        return
    from jetsel.cli.terminal import console, table

    shown = table("network", ">SLA ms", "policy", ">on the device %", ">accuracy %", ">mean ms")
    for row in rows:
        figures = (row["reliance_pct"], row["accuracy_pct"], row["latency_ms"])
        shown.add_row(row["network"], f"{row['sla_ms']:g}", row["policy"], *(f"{figure:.2f}" for figure in figures))
    console().print(shown)


def _check(policies: list[str] | None) -> None:
    from jetsel.errors import did_you_mean
    from jetsel.policies.comparison import SELECTIONS

    for name in policies or ():
        if name not in SELECTIONS:
            known = ", ".join(SELECTIONS)
            raise ConfigError(f"--policy {name}: there is none{did_you_mean(name, SELECTIONS)}; one of {known}")


def _own(
    networks: list[str],
    slas_ms: list[float],
    policies: list[str] | None,
    family: str | None,
    device: str | None,
    requests: int,
    seed: int,
    config: Any,
) -> list[dict[str, Any]]:
    import numpy as np

    from jetsel.edge.simulation import networks as kinds
    from jetsel.edge.simulation import paper
    from jetsel.edge.simulation.simulate import simulate as simulated
    from jetsel.policies.comparison import SELECTIONS

    models, on_device = paper.models(paper.TABLE_III), paper.ON_DEVICE
    if family is not None:
        models, on_device = _calibrated(family, device, config)
    rows = []
    for text in networks:
        network = paper.NETWORKS.get(text) or kinds.read(text)
        for sla_ms in slas_ms:
            for name in policies or SELECTIONS:
                chance = np.random.default_rng(seed)  # the same network for each policy
                outcome = simulated(models, network.draw(requests, chance), sla_ms, name, chance)
                figures = {
                    "reliance_pct": 100 * (1 - outcome.attainment),
                    "accuracy_pct": 100 * outcome.duplicated(on_device),
                    "latency_ms": float(outcome.latency_ms.mean()),
                }
                rows.append({"network": text, "sla_ms": sla_ms, "policy": name, **figures})
    return rows


def _calibrated(family: str, device: str | None, config: Any) -> tuple[Models, float]:
    """A calibrated family's single models as the edge's, and the accuracy of the one on the device."""
    import numpy as np

    from jetsel.cli import family_calibrations
    from jetsel.policies.selection import Models

    calibration = family_calibrations.find(config, family).entry(None).usable()
    figures = calibration.figures.get("top1", {})
    names = [name for name in calibration.costs_ms if f"single:{name}" in figures]
    if not names:
        raise CalibrationError(f"the calibration of {family} does not say how accurate its models are: recalibrate")
    device = device or names[0]
    if device not in names:
        raise ConfigError(f"--device {device}: the family has {', '.join(names)}")
    accuracy = {name: figures[f"single:{name}"]["top1"] for name in names}
    times_ms = np.array([calibration.costs_ms[name] for name in names])
    return Models(np.array(list(accuracy.values())), times_ms, 0.1 * times_ms), accuracy[device]


def _paper(requests: int, seed: int, json: bool) -> None:
    from jetsel.edge.simulation import figures

    networks = figures.table_iv(requests, seed)
    subset = figures.spanning_names()
    some = min(requests, FIGURES_REQUESTS)
    by_sla, by_variation = figures.by_sla(some, seed), figures.by_variation(some, seed)
    at_home, twenty = figures.by_sla_at_home(some, seed), figures.twenty(seed)
    if json:
        print_json(
            {
                "networks": networks,
                "spanning": subset,
                "figure_3_and_6": by_sla,
                "figure_4_and_5": by_variation,
                "figure_7": at_home,
                "figure_8": twenty,
            }
        )
        return
    from jetsel.cli.terminal import console

    out = console()
    for shown in (_table_iv(networks), _by_sla(by_sla), _by_variation(by_variation), _at_home(at_home)):
        out.print(shown)
    out.print(f"spanning subset (VI): {', '.join(subset)}", soft_wrap=True)
    late = sum(row["on_device"] for row in twenty)
    out.print(f"of 20 requests at 250 ms, residential (Figure 8), {late} were answered on the device")


def _table_iv(networks: dict[str, Any]) -> Table:
    from jetsel.cli.terminal import table

    shown = table("network", "policy", ">on the device %", ">paper", ">accuracy %", ">paper")
    shown.title = "Table IV: 250 ms, with duplication"
    for network, rows in networks.items():
        for policy, row in rows.items():
            ours = [row[key] for key in ("reliance_pct", "accuracy_pct")]
            theirs = [row["paper"][key] for key in ("reliance_pct", "accuracy_pct")]
            pairs = [text for pair in zip(ours, theirs, strict=True) for text in map(_percent, pair)]
            shown.add_row(network, policy, *pairs)
    return shown


def _by_sla(rows: list[dict[str, Any]]) -> Table:
    from jetsel.cli.terminal import table

    shown = table(
        ">SLA ms", ">ms", ">greedy's", ">less %", ">paper", ">accuracy %", ">greedy's", ">random", ">related random",
        ">related accurate", ">MDInference",
    )  # fmt: skip
    shown.title = "Figures 3 and 6: network 100 +- 50 ms; the last four with NasNet Fictional, accuracy %"
    for row in rows:
        ours, greedy = row["mdinference"], row["greedy"]
        fictional = (
            row[f"fictional {name}"] for name in ("random", "related-random", "related-accurate", "mdinference")
        )
        shown.add_row(
            f"{row['sla_ms']:g}",
            _percent(ours["latency_ms"]),
            _percent(greedy["latency_ms"]),
            _percent(row["less_latency_pct"]),
            _percent(row["paper_less_latency_pct"]),
            _percent(ours["accuracy_pct"]),
            _percent(greedy["accuracy_pct"]),
            *(_percent(one["accuracy_pct"]) for one in fictional),
        )
    return shown


def _by_variation(rows: list[dict[str, Any]]) -> Table:
    from jetsel.cli.terminal import table

    shown = table(">variation %", ">SLA ms", ">in time %", ">accuracy %", "models used, %")
    shown.title = "Figures 4 and 5: MDInference, network of 100 ms in the mean"
    for row in rows:
        used = ", ".join(f"{name} {share:.0f}" for name, share in sorted(row["usage"].items(), key=lambda one: -one[1]))
        figures = (
            f"{100 * row['cv']:.0f}",
            f"{row['sla_ms']:g}",
            *map(_percent, (row["attainment_pct"], row["accuracy_pct"])),
        )
        shown.add_row(*figures, used)
    return shown


def _at_home(rows: list[dict[str, Any]]) -> Table:
    from jetsel.cli.terminal import table

    policies = [name for name in rows[0] if name != "sla_ms"]
    shown = table(">SLA ms", *(f">{name}" for name in policies))
    shown.title = "Figure 7: residential, accuracy % (on the device %)"
    for row in rows:
        cells = (f"{row[name]['accuracy_pct']:.1f} ({row[name]['reliance_pct']:.1f})" for name in policies)
        shown.add_row(f"{row['sla_ms']:g}", *cells)
    return shown


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
