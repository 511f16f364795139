"""What `jetsel simulate --recording` prints: accuracy and on-time share by deadline, predicted for the owner."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jetsel.daemon.snapshot import limits_of
from jetsel.edge.model_runner import BYTES_PER_PIXEL
from jetsel.errors import CalibrationError, ConfigError
from jetsel.image import Limits, measure, read_file, smaller_size
from jetsel.policies.deadline import EDGE, REDUCED


def predictions(
    recording: Path,
    networks: list[str],
    deadlines_ms: list[float],
    policies: list[str],
    family: str | None,
    config: Path | None,
    around_ms: float,
    edge_factor: float,
    seed: int,
) -> list[dict[str, Any]]:
    """Return a row for each network, deadline and policy: with the edge, and with the device alone."""
    from jetsel.calibrate.deadlines import World, predict
    from jetsel.calibrate.record.load import load
    from jetsel.cli import family_calibrations
    from jetsel.edge import networks as kinds
    from jetsel.policies import catalogue
    from jetsel.policies.with_edge import deadline_policies

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
    sizes, sides_px = _photographs(loaded.recording.paths, limits_of(calibrations.config))
    reduced = {
        name: [round(math.prod(smaller_size(*side, int(px))) * BYTES_PER_PIXEL) for side in sides_px]
        for name, px in ((name, name.partition(REDUCED)[2]) for name in elsewhere)
        if px
    }
    ways = {"device alone": [], "with the edge": elsewhere} if elsewhere else {"device alone": []}
    rows = []
    for text in networks:
        network = kinds.read(text)
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
                    if policy.name in policies:
                        told = asdict(predict(policy, world, deadline_ms, seed))
                        around = {"network": text, "deadline_ms": deadline_ms, "policy": policy.name, "models": way}
                        rows.append(around | told)
    return rows


def _photographs(paths: Sequence[str], limits: Limits) -> tuple[list[int], list[tuple[int, int]]]:
    """The bytes, and the width and height, of the recorded photographs."""
    sizes, sides_px = [], []
    for path in paths:
        try:
            data = read_file(Path(path), limits)
        except OSError as error:
            raise CalibrationError(
                f"{path}: {error.strerror}: the recording's photographs say how large they are"
            ) from None
        header = measure(memoryview(data), None, limits, 1).header
        assert header is not None, "raw pixels are not recorded"
        sizes.append(len(data))
        sides_px.append((header.width, header.height))
    return sizes, sides_px


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
