"""The options of one camera: each is made from a field of Camera, with its name, type, range, default and meaning."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Annotated, Any

import typer
from msgspec import inspect as kinds

from jetsel.addons.cameras.config import Camera
from jetsel.cli.options import served_models

_SAVING = "Images of doubtful answers"
_NO_OPTIONS = ("source", "user", "password_file", "regions")  # SOURCE, a URL's own login and --region
_SHOWN: dict[str, dict[str, Any]] = {
    "gate": {"metavar": "FEATURE:THRESHOLD"},
    "model": {"autocompletion": served_models},
    "save": {"metavar": "FOLDER", "rich_help_panel": _SAVING},
    "save_mb": {"rich_help_panel": _SAVING},
    "save_below": {"rich_help_panel": _SAVING},
}
"""What the command line alone needs to know of a field."""
_FLAGS = {"every_s": "--every"}  # where it is not the field's name


def with_camera_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that has the options in place of the parameter `camera`, which gets their values by field."""
    meanings = dict(re.findall(r"^ *(\w+): (.+)$", Camera.__doc__ or "", re.MULTILINE))
    fields = kinds.type_info(Camera).fields  # type: ignore[attr-defined]
    options = [_option(one, meanings.get(one.name)) for one in fields if one.name not in _NO_OPTIONS]
    own = inspect.signature(command, eval_str=True).parameters.values()

    @functools.wraps(command)
    def run(**given: Any) -> None:
        camera = {option.name: given.pop(option.name) for option in options}
        command(camera=camera, **given)

    parameters = [option for one in own for option in (options if one.name == "camera" else [one])]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def _option(field: kinds.Field, meaning: str | None) -> inspect.Parameter:
    """Return the parameter of a command for a field: None unless it is given, if the field has no default."""
    types = field.type.types if isinstance(field.type, kinds.UnionType) else [field.type]
    number = next((one for one in types if isinstance(one, kinds.FloatType | kinds.IntType)), None)
    kind: Any = str if number is None else float if isinstance(number, kinds.FloatType) else int
    shown = dict(_SHOWN.get(field.name, {}))
    if number is not None:
        shown |= {"min": number.gt if number.ge is None else number.ge, "max": number.le}
    option = typer.Option(_FLAGS.get(field.name, f"--{field.name.replace('_', '-')}"), help=meaning, **shown)
    default = None if field.required else field.default
    annotation: Any = Annotated[kind if default is not None else kind | None, option]
    return inspect.Parameter(
        field.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation
    )
