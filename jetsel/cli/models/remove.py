"""`jetsel models remove`: take a model away, after saying what was made with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jetsel.cli.options import ConfigFile, Json, print_json

if TYPE_CHECKING:
    from jetsel.config import Config


def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The model, see jetsel models list.")],
    family: Annotated[
        str | None, typer.Option("--family", metavar="NAME", help="Family of the model, if its name is ambiguous.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Remove a model: its manifest and weights, and its labels where no other model uses them.

    A calibration belongs to the models that it was made with, and is refused without one of them.
    """
    from jetsel.cli import settings
    from jetsel.errors import ManifestError
    from jetsel.zoo import STARTER, model_folders, scan
    from jetsel.zoo.placing import take_out

    values = settings.read(settings.locate(config))
    found, model = scan(model_folders(values.models)).find(name, family)
    if model.directory.resolve() == STARTER.resolve():
        raise ManifestError(
            f"{name} ships with jetsel and stays: to serve other models, write starter = false, or only = [...], under "
            "[models] in jetsel.toml"
        )
    notes = [f"calibrations of family {found.name} that were made with it are refused from then on"]
    notes += _named_in(values, name)
    if not yes:
        for note in notes:
            typer.echo(f"note: {note}", err=True)
        typer.confirm(f"remove {name} of family {found.name} from {model.directory}?", abort=True, err=True)
    take_out(model)
    if json:
        print_json({"name": name, "family": found.name, "directory": str(model.directory), "notes": notes})
        return
    typer.echo(f"removed {name} of family {found.name} from {model.directory}")
    if yes:
        for note in notes:
            typer.echo(f"note: {note}")
    typer.echo("a daemon that runs serves it until: jetsel reload")


def _named_in(values: Config, name: str) -> list[str]:
    """Say which settings name the model: a reload is refused while they do."""
    places = [
        *(["models.only"] if name in values.models.only else []),
        *(["policy.fallback"] if values.policy.fallback == name else []),
        *(["policy.default"] if values.policy.default == f"single:{name}" else []),
    ]
    return [f"the configuration names it in {', '.join(places)}: take it out there too"] if places else []
