"""`jetsel models list`: list the models on this device from their manifests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from jetsel.cli.options import ConfigFile, Json, print_json

if TYPE_CHECKING:
    from rich.table import Table

    from jetsel.site.calibration_in_use import CalibrationInUse
    from jetsel.zoo import Family, Manifest, Zoo
    from jetsel.zoo.manifest import PrecisionChoice


def list_models(config: ConfigFile = None, json: Json = False) -> None:
    """List the models in the configured folders by family, cheapest first, with their notices."""
    from jetsel.site.calibration_in_use import choose_calibration
    from jetsel.site.configured import served_models
    from jetsel.site.site import read_site

    site = read_site(config)
    zoo = site.zoo
    served = {name: served_models(family, site.config) for name, family in zoo.families.items()}
    in_use = {
        name: choose_calibration(zoo.families[name], models, site.config, None) for name, models in served.items()
    }
    unknown = {name: one.unknown(served[name]) for name, one in in_use.items()}
    if json:
        print_json(as_plain(zoo, unknown))
        return
    from jetsel.cli import status_text
    from jetsel.cli.terminal import console

    out = console()
    for family in zoo.families.values():
        out.print(family_table(family, _times_here(in_use[family.name])))
        for notice in notices(family):
            out.print(notice, style="yellow")
        for line in status_text.not_calibrated(unknown[family.name], family.name):
            out.print(line.strip(), style="yellow")
    if not zoo.families:
        out.print("no models: see `jetsel models add --help`, and [models] in `jetsel config`")
    for broken in zoo.broken:
        typer.echo(f"jetsel: left out: {broken.path}: {broken.reason}", err=True)


def as_plain(zoo: Zoo, unknown: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return all facts about the models as values for JSON. unknown: models without a calibration, by family."""
    import msgspec

    return {
        "families": [
            {
                "name": family.name,
                "classes": len(family.labels.names),
                "not_calibrated": unknown[family.name],
                "models": [
                    msgspec.to_builtins(model.manifest) | {"directory": str(model.directory)} for model in family.models
                ],
            }
            for family in zoo.families.values()
        ],
        "broken": [{"path": str(broken.path), "reason": broken.reason} for broken in zoo.broken],
    }


def _times_here(in_use: CalibrationInUse) -> Mapping[str, float]:
    """Return each model's time in ms by the owner's calibration; a shipped one has another machine's times."""
    is_own = in_use.identity is not None and in_use.identity.number is not None
    return in_use.calibration.costs_ms if is_own and in_use.calibration is not None else {}


def family_table(family: Family, costs_ms: Mapping[str, float]) -> Table:
    """Return a table with a row for each model of a family. costs_ms: models' times on this machine, if known."""
    from jetsel.cli.terminal import table

    rows = table("model", "version", ">time", "when pulled, ms", ">parameters", "input", "folder")
    rows.title = f"family {family.name}: {len(family.labels.names)} classes"
    for model in family.models:
        manifest, spec = model.manifest, model.manifest.input
        rows.add_row(
            manifest.name,
            manifest.version,
            _time(manifest, costs_ms.get(manifest.name)),
            precision_times(manifest.provenance.precision_choice),
            f"{manifest.parameters / 1e6:.3f} million",
            f"{spec.width_px} x {spec.height_px} px",
            str(model.directory),
        )
    return rows


def precision_times(choice: PrecisionChoice | None) -> str:
    """Return in words the times in ms of a model in floats and in 8 bits, empty if they were not measured."""
    from jetsel.cli.terminal import milliseconds

    if choice is None or choice.float_ms is None or choice.int8_ms is None:
        return ""
    return f"{milliseconds(choice.float_ms)} float, {milliseconds(choice.int8_ms)} in 8 bits"


def _time(manifest: Manifest, calibrated_ms: float | None) -> str:
    """Return the latency by the manifest or the calibration in words; if neither has it, the number of operations."""
    from jetsel.cli.terminal import milliseconds

    known_ms = calibrated_ms if manifest.latency_ms is None else manifest.latency_ms
    if known_ms is None:
        return f"{(manifest.multiply_accumulates or 0) / 1e6:.2f} million multiply-accumulates"
    return f"{milliseconds(known_ms)} ms"


def notices(family: Family) -> list[str]:
    """Return each notice of the family once, with the models' names unless it applies to all of them."""
    models_by_notice: dict[str, list[str]] = {}
    for model in family.models:
        if model.manifest.provenance.notice is not None:
            models_by_notice.setdefault(model.manifest.provenance.notice, []).append(model.manifest.name)
    return [
        f"notice: {notice}" if len(names) == len(family.models) else f"notice ({', '.join(names)}): {notice}"
        for notice, names in models_by_notice.items()
    ]
