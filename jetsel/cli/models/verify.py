"""`jetsel models verify`: whether each model is whole, and runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from jetsel.cli.options import ConfigFile, Json

if TYPE_CHECKING:
    from jetsel.zoo import Family, Model

EXIT_FAILED = 1


def verify(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Which models. Left out: all, and what is left out.")
    ] = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Check each model: its hash, that all weights are inside, its labels, and a run of it on ONNX Runtime.

    Exit status 1 where one fails.
    """
    from jetsel.cli import settings
    from jetsel.errors import UnknownModelError
    from jetsel.zoo import model_folders, scan

    values = settings.read(settings.locate(config)).models
    zoo = scan(model_folders(values))
    models = [(family, model) for family in zoo.families.values() for model in family.models]
    known = {model.manifest.name for _, model in models}
    unknown = sorted(set(names or ()) - known)
    if unknown:
        raise UnknownModelError(f"there is no model {', '.join(unknown)}: see jetsel models list")
    found = [
        _checked(family, model, values.threads) for family, model in models if not names or model.manifest.name in names
    ]
    if not names:
        found += [_line(None, b.path.stem, str(b.path), None, f"{b.path}: {b.reason}") for b in zoo.broken]
    if json:
        import msgspec

        typer.echo(msgspec.json.encode({"models": found}).decode())
    else:
        for line in found:
            typer.echo(_told(line))
    if any(line["fault"] is not None for line in found):
        raise typer.Exit(EXIT_FAILED)


def _checked(family: Family, model: Model, threads: int) -> dict[str, Any]:
    from jetsel.engines.trying import tried
    from jetsel.errors import JetselError
    from jetsel.zoo import verify as check
    from jetsel.zoo.onnx_model import model_in

    name, path = model.manifest.name, str(model.path)
    try:
        model_in(check(model), path)
        latency_ms = tried(model.weights(len(family.labels.names)), threads).latency_ms
        return _line(family.name, name, path, latency_ms, None)
    except JetselError as fault:
        return _line(family.name, name, path, None, str(fault))


def _line(family: str | None, name: str, path: str, latency_ms: float | None, fault: str | None) -> dict[str, Any]:
    return {"family": family, "name": name, "path": path, "latency_ms": latency_ms, "fault": fault}


def _told(line: dict[str, Any]) -> str:
    from jetsel.cli.terminal import milliseconds

    what = line["name"] if line["family"] is None else f"{line['family']} {line['name']}"
    if line["fault"] is None:
        return f"{what}: good, {milliseconds(line['latency_ms'])} ms a photograph"
    return f"{what}: {' '.join(line['fault'].split())}"
