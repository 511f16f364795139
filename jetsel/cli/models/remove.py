"""`jetsel models remove`: remove a model or a family, after a warning about what depends on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jetsel.cli.options import ConfigFile, Json, print_json

if TYPE_CHECKING:
    from jetsel.base.config import Config
    from jetsel.zoo import Family, Model, Zoo


def remove(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The model, see jetsel models list (default: every model of --family)."),
    ] = None,
    family: Annotated[
        str | None, typer.Option("--family", metavar="NAME", help="Family to remove, or family of the model NAME.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove without asking.")] = False,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Remove a model, or a whole family: manifests, weights, and labels that no other model uses.

    A calibration belongs to the models that it was made with, and is rejected if one of them is missing.
    """
    from jetsel.base.errors import ManifestError
    from jetsel.cli.models.placed import print_notes
    from jetsel.site.site import read_site
    from jetsel.zoo import STARTER
    from jetsel.zoo.placing import remove_model

    site = read_site(config)
    family_name, models = _models_to_remove(site.zoo, name, family)
    names = [model.manifest.name for model in models]
    folders = ", ".join(dict.fromkeys(str(model.directory) for model in models))
    if any(model.directory.resolve() == STARTER.resolve() for model in models):
        raise ManifestError(
            f"{', '.join(names)} ships with jetsel and cannot be removed: to serve other models, write "
            "starter = false, or only = [...], under [models] in jetsel.toml"
        )
    notes = [f"calibrations of family {family_name.name} that were made with it will be rejected"]
    notes += [note for model_name in names for note in _settings_notes(site.config, model_name)]
    if not yes:
        print_notes(notes, err=True)
        typer.confirm(f"remove {', '.join(names)} of family {family_name.name} from {folders}?", abort=True, err=True)
    for model in models:
        remove_model(model)
    if json:
        print_json({"name": name, "models": names, "family": family_name.name, "directory": folders, "notes": notes})
        return
    typer.echo(f"removed {', '.join(names)} of family {family_name.name} from {folders}")
    if yes:
        print_notes(notes)
    typer.echo("a running daemon serves it until you run: jetsel reload")


def _models_to_remove(zoo: Zoo, name: str | None, family: str | None) -> tuple[Family, tuple[Model, ...]]:
    """Return a family, and its model of this name or all; raises UnknownModelError or UnknownFamilyError."""
    from jetsel.base.errors import UnknownFamilyError, UnknownModelError, did_you_mean

    if name is None:
        if family is None:
            raise typer.BadParameter("name a model, or a family with --family", param_hint="NAME")
        if family not in zoo.families:
            suggestion = did_you_mean(family, zoo.families)
            raise UnknownFamilyError(f"there is no family {family}{suggestion}: see jetsel models list")
        return zoo.families[family], zoo.families[family].models
    try:
        owner, model = zoo.find(name, family)
    except UnknownModelError as error:
        models = zoo.families[family].models if family in zoo.families else ()
        of_kind = [one.manifest.name for one in models if one.manifest.name.endswith(f"-{name}")]
        if of_kind:
            raise UnknownModelError(f"{error}; of the kind {name} it has {', '.join(of_kind)}: remove each") from None
        if name not in zoo.families:
            raise
        raise UnknownModelError(f"{error}; {name} is a family: jetsel models remove --family {name}") from None
    return owner, (model,)


def _settings_notes(values: Config, name: str) -> list[str]:
    """Return a note if settings name the model, because the daemon would then refuse to reload; else no note."""
    settings = [
        *(["models.only"] if name in values.models.only else []),
        *(["policy.fallback"] if values.policy.fallback == name else []),
        *(["policy.default"] if values.policy.default == f"single:{name}" else []),
    ]
    return [f"the configuration names {name} in {', '.join(settings)}: take it out there too"] if settings else []
