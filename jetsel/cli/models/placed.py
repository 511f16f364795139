"""Shared by the commands that add or change a model: their options, the choice of the folder, the printed result."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from jetsel.base.names import RULE, is_plain, plain_name
from jetsel.cli.options import print_json

if TYPE_CHECKING:
    from jetsel.base.config import Config
    from jetsel.zoo.adding import AddedModel, CheckPreprocessing, ModelDescription
    from jetsel.zoo.onnx_model import OnnxFile


def checked_name(text: str | None) -> str | None:
    """Return --name or --family as it is; raises BadParameter if it cannot be a name. typer calls this for each."""
    if text is None or is_plain(text):
        return text
    suggestion = plain_name(text)
    raise typer.BadParameter(f"{text!r} cannot be a name: {RULE}{f'; for example {suggestion}' if suggestion else ''}")


Folder = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Folder to add to (default: the first of [models] paths that you may write to, else "
        "`models` beside your calibrations).",
    ),
]
Name = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", callback=checked_name, help="Name in requests (default: the source's)."),
]
FamilyName = Annotated[
    str | None,
    typer.Option(
        "--family",
        metavar="NAME",
        callback=checked_name,
        help="Family of the model (default: the labels file's or data set's name).",
    ),
]
Replace = Annotated[bool, typer.Option("--replace", help="Replace the family's model of this name.")]
Like = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Prepare images as torchvision, timm, ultralytics, keras or others do."),
]
Mean = Annotated[str | None, typer.Option(metavar="A,B,C", help="Mean of each channel, in units of 0 to 1.")]
Std = Annotated[
    str | None, typer.Option(metavar="A,B,C", help="Standard deviation of each channel, in units of 0 to 1.")
]
Resize = Annotated[
    Literal["shorter-side", "stretch"] | None,
    typer.Option(help="Scale both sides alike and crop, or stretch to the input."),
]
ResizePx = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Shorter side after scaling, before the crop (default: the input's)."),
]
Interpolation = Annotated[
    Literal["area", "bilinear", "bicubic", "antialiased-bilinear", "antialiased-bicubic"] | None,
    typer.Option(help="Interpolation used in training. The antialiased kinds are those of Pillow and torchvision."),
]
Channels = Annotated[Literal["rgb", "bgr"] | None, typer.Option(help="Order of the input's channels.")]


def parse_triple(text: str) -> tuple[float, float, float]:
    """Return the numbers of --mean or --std: `0.485,0.456,0.406`; raises BadParameter, also for levels of 0 to 255."""
    from jetsel.zoo.conventions import LEVELS_FROM

    try:
        red, green, blue = (float(number) for number in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not three numbers with commas, as in 0.485,0.456,0.406") from None
    if max(red, green, blue) > LEVELS_FROM:
        meant = ",".join(f"{number / 255:.3f}" for number in (red, green, blue))
        raise typer.BadParameter(f"{text!r} uses levels of 0 to 255, not units of 0 to 1: {meant}")
    return red, green, blue


def parse_size(text: str) -> tuple[int, int]:
    """Return width and height in pixels of a text such as `224x192`; raises BadParameter."""
    match = re.fullmatch(r"([1-9]\d{0,4})x([1-9]\d{0,4})", text)
    if match is None:
        raise typer.BadParameter(f"{text!r} is not a width and height, as in 224x224")
    return int(match[1]), int(match[2])


def add_to_folder(
    file: OnnxFile,
    description: ModelDescription,
    values: Config,
    folder: Path | None,
    *,
    replace: bool,
    check: CheckPreprocessing | None = None,
) -> AddedModel:
    """Add the model in a file, after a first run. Raises ManifestError, EngineFailedError or ConfigError."""
    from jetsel.engines.trying import try_run
    from jetsel.zoo import model_folders
    from jetsel.zoo.adding import AddTarget, add_model

    folders = AddTarget.of(model_folders(values.models), first_writable(values), folder)
    try_it = partial(try_run, threads=values.models.threads)
    return add_model(file, description, folders, try_it, replace=replace, check=check)


def print_added(added: AddedModel, source: str, values: Config, *, json: bool) -> None:
    """Print an added model, its latency, its source, and what is left to do."""
    from jetsel.cli.terminal import milliseconds

    manifest = added.model.manifest
    notes = [*added.notes, *notes_of(values, added.model.directory, manifest.family, [manifest.name])]
    if json:
        import msgspec

        model = added.model
        fields = {"directory": str(model.directory), "manifest": str(model.manifest_path), "classes": added.classes}
        print_json({**msgspec.to_builtins(manifest), **fields, "changes": added.changes, "notes": notes})
        return
    typer.echo(
        f"added {manifest.name} {manifest.version} to family {manifest.family}: {added.classes} classes, "
        f"{manifest.input.width_px} x {manifest.input.height_px} px"
    )
    typer.echo(
        f"it takes {milliseconds(manifest.cost_ms)} ms per image here, on ONNX Runtime: "
        f"{manifest.parameters / 1e6:.3f} million parameters"
    )
    for line in (*added.changes, f"its source: {source}", f"its manifest: {added.model.manifest_path}"):
        typer.echo(line)
    print_notes(notes)
    typer.echo("to use it in a running daemon: jetsel reload")


def first_writable(values: Config) -> Path:
    """Return the first folder in models.paths that this user can write to, or else the user's own folder for models."""
    from jetsel.base.state import state_folder

    writable = [path for path in map(Path, values.models.paths) if path.is_dir() and os.access(path, os.W_OK | os.X_OK)]
    return next(iter(writable), state_folder("models"))


def notes_of(values: Config, folder: Path, family: str, added: Sequence[str]) -> list[str]:
    """Return notes on settings that keep the daemon from serving the added models, or from serving them by default."""
    from jetsel.site.site import open_site
    from jetsel.zoo import model_folders

    notes = []
    if folder.resolve() not in [served_folder.resolve() for served_folder in model_folders(values.models)]:
        paths = ", ".join(f'"{path}"' for path in [*values.models.paths, folder.resolve()])
        notes.append(f"the daemon does not read {folder}: under [models] in jetsel.toml, write paths = [{paths}]")
    else:
        default = open_site(values).default_family
        if default != family:
            notes.append(
                f"requests that name no family are answered by {default}: under [models] in jetsel.toml, write "
                f'default_family = "{family}"; or name it: jetsel classify --family {family}'
            )
    only = values.models.only
    if only and not set(added) <= set(only):
        names = ", ".join(f'"{name}"' for name in dict.fromkeys([*only, *added]))
        notes.append(f"`only` under [models] excludes it: write only = [{names}]")
    return notes


def print_notes(notes: Iterable[str], *, err: bool = False) -> None:
    """Print each note on a line of its own."""
    for note in notes:
        typer.echo(f"note: {note}", err=err)
