"""`jetsel models list`: the models on this device, by what their manifests say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from jetsel.cli.options import ConfigFile, Json, print_json

if TYPE_CHECKING:
    from rich.table import Table

    from jetsel.base.config import Config
    from jetsel.zoo import Family, Manifest, Zoo
    from jetsel.zoo.manifest import PrecisionChoice


def list_models(config: ConfigFile = None, json: Json = False) -> None:
    """List the models in the configured folders by family, cheapest first, with their notices."""
    from jetsel.site.site import read_site

    site = read_site(config)
    zoo = site.zoo
    unknown = {name: _unknown(family, site.config) for name, family in zoo.families.items()}
    if json:
        print_json(as_plain(zoo, unknown))
        return
    from jetsel.cli import status_text
    from jetsel.cli.terminal import console

    out = console()
    for family in zoo.families.values():
        out.print(family_table(family))
        for notice in notices(family):
            out.print(notice, style="yellow")
        for line in status_text.not_calibrated(unknown[family.name], family.name):
            out.print(line.strip(), style="yellow")
    if not zoo.families:
        out.print("no models: see `jetsel models add --help`, and [models] in `jetsel config`")
    for broken in zoo.broken:
        typer.echo(f"jetsel: left out: {broken.path}: {broken.reason}", err=True)


def as_plain(zoo: Zoo, unknown: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return everything that is known of the models as plain values. unknown: by family, what is not calibrated."""
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


def _unknown(family: Family, config: Config) -> list[str]:
    """Return the family's models that its calibration does not know."""
    from jetsel.site.calibration_in_use import choose
    from jetsel.site.configured import served_models

    served = served_models(family, config)
    return choose(family, served, config, None).unknown(served)


def family_table(family: Family) -> Table:
    """Return a row for each model of a family; --json tells all that its manifest says."""
    from jetsel.cli.terminal import table

    shown = table("model", "version", ">time", "when pulled, ms", ">parameters", "input", "folder")
    shown.title = f"family {family.name}: {len(family.labels.names)} classes"
    for model in family.models:
        manifest, spec = model.manifest, model.manifest.input
        shown.add_row(
            manifest.name,
            manifest.version,
            _time(manifest),
            described(manifest.precision_choice),
            f"{manifest.parameters / 1e6:.3f} million",
            f"{spec.width_px} x {spec.height_px} px",
            str(model.directory),
        )
    return shown


def described(choice: PrecisionChoice | None) -> str:
    """Return the two times in words, nothing if none were taken."""
    from jetsel.cli.terminal import milliseconds

    if choice is None or choice.float_ms is None or choice.int8_ms is None:
        return ""
    return f"{milliseconds(choice.float_ms)} float, {milliseconds(choice.int8_ms)} in 8 bits"


def _time(manifest: Manifest) -> str:
    """What orders the models: the time of a run if it was added, or the operations of one that came without."""
    from jetsel.cli.terminal import milliseconds

    if manifest.latency_ms is None:
        return f"{(manifest.multiply_accumulates or 0) / 1e6:.2f} million multiply-accumulates"
    return f"{milliseconds(manifest.latency_ms)} ms"


def notices(family: Family) -> list[str]:
    """Return each notice of the family's models once, with the models it is about if it is not about all."""
    about: dict[str, list[str]] = {}
    for model in family.models:
        if model.manifest.notice is not None:
            about.setdefault(model.manifest.notice, []).append(model.manifest.name)
    return [
        f"notice: {notice}" if len(names) == len(family.models) else f"notice ({', '.join(names)}): {notice}"
        for notice, names in about.items()
    ]
