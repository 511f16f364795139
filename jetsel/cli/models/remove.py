"""`jetsel models remove`: take a model away, after saying what was made with it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from jetsel.cli.models.options import FamilyName
from jetsel.cli.options import ConfigFile, Json

if TYPE_CHECKING:
    from jetsel.config import Config
    from jetsel.zoo import Family, Model


def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The model, see jetsel models list.")],
    family: FamilyName = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Remove a model: its manifest and weights, and its labels where no other model uses them.

    A calibration belongs to the models that it was made with: those that become unusable are named first.
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
    notes = [*_calibrations_lost(values, found, model), *_named_in(values, name)]
    if not yes:
        for note in notes:
            typer.echo(f"note: {note}", err=True)
        typer.confirm(f"remove {name} of family {found.name} from {model.directory}?", abort=True, err=True)
    take_out(model)
    if json:
        import msgspec

        plain = {"name": name, "family": found.name, "directory": str(model.directory), "notes": notes}
        typer.echo(msgspec.json.encode(plain).decode())
        return
    typer.echo(f"removed {name} of family {found.name} from {model.directory}")
    if yes:
        for note in notes:
            typer.echo(f"note: {note}")
    typer.echo("a daemon that runs serves it until: jetsel reload")


def _calibrations_lost(values: Config, family: Family, model: Model) -> list[str]:
    """Say which calibrations are used now and would be refused without the model."""
    from jetsel.cli.shelf import Shelf, named
    from jetsel.config import calibrations_folder
    from jetsel.errors import CalibrationError

    rest = tuple(other for other in family.models if other is not model)
    before = Shelf(family.name, calibrations_folder(values.models), values, family)
    after = dataclasses.replace(before, models=dataclasses.replace(family, models=rest) if rest else None)
    try:
        usable = [entry.number for entry in before.entries() if entry.reason is None]
        left = {entry.number for entry in after.entries() if entry.reason is None} if rest else set()
    except CalibrationError as fault:
        return [f"which calibrations were made with it cannot be told: {fault}"]
    lost = [number for number in usable if number not in left]
    if not lost:
        return []
    numbers = ", ".join(named(number) for number in lost)
    return [f"calibrations of family {family.name} that were made with it are refused from then on: {numbers}"]


def _named_in(values: Config, name: str) -> list[str]:
    """Say which settings name the model: a reload is refused while they do."""
    places = [
        *(["models.only"] if name in values.models.only else []),
        *(["policy.fallback"] if values.policy.fallback == name else []),
        *(["policy.default"] if values.policy.default == f"single:{name}" else []),
        *(f"policies.{policy}" for policy, own in values.policies.items() if name in own.models),
    ]
    return [f"the configuration names it in {', '.join(places)}: take it out there too"] if places else []
