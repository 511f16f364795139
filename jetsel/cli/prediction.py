"""What `jetsel simulate --recording` prints: accuracy and on-time share by deadline, predicted for the owner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jetsel.daemon.edge import BYTES_PER_PIXEL
from jetsel.errors import CalibrationError, ConfigError
from jetsel.policies.deadline import REDUCED

ASPECT = 4 / 3


def predictions(
    recording: Path,
    networks: list[str],
    deadlines_ms: list[float],
    selections: Sequence[str | None],
    family: str | None,
    config: Path | None,
    around_ms: float,
    edge_factor: float,
    seed: int,
) -> list[dict[str, Any]]:
    """Return a row for each network, deadline and selection: with the edge, and with the device alone."""
    from jetsel.calibrate.deadlines import EDGE, World, predict
    from jetsel.calibrate.record.load import load
    from jetsel.cli import family_calibrations
    from jetsel.daemon.outlook import deadline_policies
    from jetsel.edge.simulation import networks as kinds
    from jetsel.edge.simulation import paper
    from jetsel.policies import catalogue

    calibrations = family_calibrations.find(config, family)
    models, served = calibrations.served()
    calibration, edge = calibrations.entry(None).usable(), calibrations.config.edge
    loaded = load(recording, models)
    unknown = sorted(set(edge.models) - set(loaded.recording.models))
    if unknown:
        raise ConfigError(f"edge.models.{unknown[0]}: {recording} has no model of that name")
    costs_ms = {name: loaded.recording.costs_ms[name] for name in served}
    sizes_px = {EDGE + name: ["", *model.accuracy_at_px] for name, model in edge.models.items()}
    elsewhere = [name + (REDUCED + px if px else "") for name, sides in sizes_px.items() for px in sides]
    for name in elsewhere:
        costs_ms[name] = edge_factor * loaded.recording.costs_ms[name.removeprefix(EDGE).partition(REDUCED)[0]]
    reduced = {name: _reduced_bytes(int(name.partition(REDUCED)[2])) for name in elsewhere if REDUCED in name}
    sizes = _sizes(loaded.recording.paths)
    ways = {"device alone": [], "with the edge": elsewhere} if elsewhere else {"device alone": []}
    rows = []
    for text in networks:
        network = paper.NETWORKS.get(text) or kinds.read(text)
        for deadline_ms in deadlines_ms:
            for way, there in ways.items():
                offered = deadline_policies(
                    "top1", catalogue(list(served), calibration)["top1"], calibration, list(served), there, edge
                )
                if not offered:
                    raise CalibrationError(f"the calibration of {models.name} does not say how accurate its models are")
                known = (loaded.recording, calibration.temperatures, {m: costs_ms[m] for m in (*served, *there)})
                world = World(*known, network, sizes, reduced, offered[0].accuracy, around_ms)
                for policy in offered:
                    if policy.selection in selections:
                        told = asdict(predict(policy, world, deadline_ms, seed))
                        around = {"network": text, "deadline_ms": deadline_ms, "policy": policy.name, "models": way}
                        rows.append(around | told)
    return rows


def _sizes(paths: Sequence[str]) -> list[int]:
    """The bytes of the recorded photographs; the mean of all for one that is gone."""
    found = [path.stat().st_size if (path := Path(name)).exists() else None for name in paths]
    known = [size for size in found if size is not None]
    mean = round(sum(known) / len(known)) if known else 0
    return [mean if size is None else size for size in found]


def _reduced_bytes(side_px: int) -> int:
    return round(side_px**2 * ASPECT * BYTES_PER_PIXEL)


def show(rows: list[dict[str, Any]]) -> None:
    """Print them as a table."""
    from jetsel.cli.terminal import console, table

    shown = table(
        "network", ">deadline ms", "policy", "models", ">right %", ">in time %", ">both %", ">by the edge %", ">mean ms"
    )
    for row in rows:
        shares = (f"{100 * row[key]:.2f}" for key in ("accuracy", "on_time", "effective", "from_edge"))
        shown.add_row(
            row["network"], f"{row['deadline_ms']:g}", row["policy"], row["models"], *shares, f"{row['mean_ms']:.1f}"
        )
    console().print(shown)
