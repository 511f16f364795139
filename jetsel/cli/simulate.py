"""`jetsel simulate`: what deadlines and an edge server would give on recorded images, before anything is built."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from jetsel.base.errors import ConfigError, did_you_mean
from jetsel.cli.options import ConfigFile, Json, print_json

POLICIES = ("deadline", "deadline:mdinference")


def simulate(
    recording: Annotated[
        Path, typer.Option(metavar="FILE", help="Recording of all models, by `jetsel evaluate --recording`.")
    ],
    network: Annotated[
        list[str] | None,
        typer.Option(
            help="Network: a file of times in ms and bytes (`jetsel edge trace`), university, residential, "
            "normal:MEAN,DEVIATION, lognormal:MEDIAN,SIGMA or two-state:GOOD,DEVIATION,BAD,DEVIATION,WORSENS,RECOVERS "
            "(default: university)."
        ),
    ] = None,
    sla_ms: Annotated[list[float] | None, typer.Option(min=1, help="Deadline in ms (default: 250).")] = None,
    policy: Annotated[
        list[str] | None, typer.Option(help="Policy: deadline or deadline:mdinference (default: deadline).")
    ] = None,
    family: Annotated[str | None, typer.Option(help="Model family (default: the configured one).")] = None,
    around_ms: Annotated[float, typer.Option(min=0, help="Time of a request besides its models, in ms.")] = 5,
    edge_factor: Annotated[float, typer.Option(min=0.001, help="Scale factor for the edge server's latencies.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed of the simulated times.")] = 7,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Predict accuracy and on-time share of requests with deadlines, with the configured edge server and without it.

    The daemon's own code answers the recorded images on a virtual clock: the models of `[models] only` run on the
    device, those of `[edge]` on the edge server.
    """
    for name in policy or ():
        if name not in POLICIES:
            raise ConfigError(
                f"--policy {name}: no such policy{did_you_mean(name, POLICIES)}; use {' or '.join(POLICIES)}"
            )
    from jetsel.calibrate.deadlines import predictions
    from jetsel.site.families import limits_of
    from jetsel.site.site import read_site

    calibrations = read_site(config).calibrations(family)
    models, served = calibrations.served()
    calibration, limits = calibrations.entry(None).usable(), limits_of(calibrations.config)
    device = (recording, models, list(served), calibration, calibrations.config, limits)
    asked = (network or ["university"], sla_ms or [250.0], policy or [POLICIES[0]])
    rows = predictions(*device, *asked, around_ms, edge_factor, seed)
    print_json({"rows": rows}) if json else _show(rows)


def _show(rows: list[dict[str, Any]]) -> None:
    """Print them as a table."""
    from jetsel.cli.terminal import console, table

    shown = table(
        "network", ">deadline ms", "policy", "models", ">right %", ">in time %", ">both %", ">edge server %", ">mean ms"
    )
    for row in rows:
        shares = (f"{100 * row[key]:.2f}" for key in ("accuracy", "on_time", "effective", "from_edge"))
        shown.add_row(
            row["network"], f"{row['deadline_ms']:g}", row["policy"], row["models"], *shares, f"{row['mean_ms']:.1f}"
        )
    console().print(shown)
