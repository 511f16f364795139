"""`jetsel models list`: the models on this device, by what their manifests say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from jetsel.cli.options import ConfigFile, Json

if TYPE_CHECKING:
    from rich.table import Table

    from jetsel.zoo import Family, Manifest, Zoo


def list_models(config: ConfigFile = None, json: Json = False) -> None:
    """List every model that the configuration's folders hold, by family, cheapest first, with its notice."""
    from jetsel.cli import settings
    from jetsel.zoo.folders import model_folders
    from jetsel.zoo.store import scan

    zoo = scan(model_folders(settings.read(settings.locate(config)).models))
    if json:
        import msgspec

        typer.echo(msgspec.json.encode(as_plain(zoo)).decode())
        return
    from jetsel.cli.terminal import console

    out = console()
    for family in zoo.families.values():
        out.print(family_table(family))
        for notice in notices(family):
            out.print(notice, markup=False, style="yellow")
    if not zoo.families:
        out.print("no models: see `jetsel models add --help`, and [models] in `jetsel config`", markup=False)
    for broken in zoo.broken:
        typer.echo(f"jetsel: left out: {broken.path}: {broken.reason}", err=True)


def as_plain(zoo: Zoo) -> dict[str, Any]:
    """Return everything that is known of the models as plain values."""
    import msgspec

    return {
        "families": [
            {
                "name": family.name,
                "classes": len(family.labels.names),
                "models": [
                    msgspec.to_builtins(model.manifest) | {"directory": str(model.directory)} for model in family.models
                ],
            }
            for family in zoo.families.values()
        ],
        "broken": [{"path": str(broken.path), "reason": broken.reason} for broken in zoo.broken],
    }


def family_table(family: Family) -> Table:
    """Return one family: a model in each column, what its manifest says in each row."""
    from rich.markup import escape

    from jetsel.cli.terminal import table

    shown = table("", *(escape(model.manifest.name) for model in family.models))
    shown.title = f"family {escape(family.name)}: {len(family.labels.names)} classes"
    columns = [_said(model.manifest) | {"folder": str(model.directory)} for model in family.models]
    for row in columns[0]:
        shown.add_row(row, *(escape(column[row]) for column in columns))
    return shown


def _said(manifest: Manifest) -> dict[str, str]:
    spec = manifest.input
    return {
        "version": manifest.version,
        "time": _time(manifest),
        "parameters": f"{manifest.parameters / 1e6:.3f} million",
        "input": f"{spec.width_px} x {spec.height_px} px, {spec.channels}",
        "resize": f"{spec.resize}{f' to {spec.resize_px} px' if spec.resize_px else ''}, {spec.interpolation}; "
        f"crop {spec.crop}",
        "normalisation": f"mean {_numbers(spec.mean)}; std {_numbers(spec.std)}",
        "outputs": ", ".join(manifest.outputs),
        "embedding": "none" if manifest.embedding_width is None else f"{manifest.embedding_width} wide",
        "labels": manifest.labels,
        "file": manifest.file,
        "sha256": f"{manifest.sha256[:12]}... (whole in --json)",
        "source": manifest.source,
    }


def _time(manifest: Manifest) -> str:
    from jetsel.cli.terminal import milliseconds

    if manifest.latency_ms is None:
        return f"{(manifest.multiply_accumulates or 0) / 1e6:.2f} million multiply-accumulates"
    return f"{milliseconds(manifest.latency_ms)} ms where it was added"


def _numbers(values: tuple[float, float, float]) -> str:
    return " ".join(f"{value:g}" for value in values)


def notices(family: Family) -> list[str]:
    """Return each notice of the family's models once, with the models it is about where it is not about all."""
    about: dict[str, list[str]] = {}
    for model in family.models:
        if model.manifest.notice is not None:
            about.setdefault(model.manifest.notice, []).append(model.manifest.name)
    return [
        f"notice: {notice}" if len(names) == len(family.models) else f"notice ({', '.join(names)}): {notice}"
        for notice, names in about.items()
    ]
