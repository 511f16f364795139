"""`jetsel models add`: check an ONNX file by running it, and put it where the daemon finds it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from jetsel.base.names import RULE, path_text, plain_name
from jetsel.cli.models.placed import FamilyName, Folder, Name, Replace, size, triple
from jetsel.cli.options import ConfigFile, Json

Interpolation = Literal["area", "bilinear", "bicubic", "antialiased-bilinear", "antialiased-bicubic"]


def _checked(onnx: Path) -> Path:
    """Return the path of a model; raises ManifestError, before other options are missed, if the file is none."""
    from jetsel.zoo.onnx_model import read_model

    read_model(onnx)
    return onnx


def add(
    onnx: Annotated[
        Path,
        typer.Argument(
            metavar="FILE.onnx", help="ONNX file, its weights in it or beside it.", callback=_checked, is_eager=True
        ),
    ],
    labels: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="Class names in the order of the outputs: one on each line, numbered or not, JSON, a Python list, or "
            "another model's labels file.",
        ),
    ],
    mean: Annotated[str, typer.Option(metavar="A,B,C", help="Mean of each channel, in units of 0 to 1.")],
    std: Annotated[str, typer.Option(metavar="A,B,C", help="Standard deviation of each channel, in units of 0 to 1.")],
    name: Name = None,
    family: FamilyName = None,
    folder: Folder = None,
    version: Annotated[str, typer.Option(metavar="N.N.N", help="Version of the model.")] = "1.0.0",
    input_px: Annotated[
        str | None,
        typer.Option("--input", metavar="WxH", help="Input size, if the file leaves it open."),
    ] = None,
    resize: Annotated[
        Literal["shorter-side", "stretch"],
        typer.Option(help="Scale both sides alike and crop, or stretch to the input."),
    ] = "shorter-side",
    resize_px: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Shorter side after scaling, before the crop (default: the input's)."),
    ] = None,
    interpolation: Annotated[
        Interpolation,
        typer.Option(help="Interpolation used in training. The antialiased kinds are those of Pillow and torchvision."),
    ] = "antialiased-bilinear",
    crop: Annotated[Literal["center", "none"], typer.Option(help="Part that is kept after scaling.")] = "center",
    channels: Annotated[Literal["rgb", "bgr"], typer.Option(help="Order of the input's channels.")] = "rgb",
    output: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Output with the logits (default: `logits`, or the only output)."),
    ] = None,
    exclusive: Annotated[
        bool,
        typer.Option("--exclusive", help="Take each image to have exactly one class, if the model ends in a sigmoid."),
    ] = False,
    source: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Origin of the model (default: the file's name).")
    ] = None,
    notice: Annotated[str | None, typer.Option(metavar="TEXT", help="Notice for users of the model.")] = None,
    replace: Replace = False,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Check a model by running it, and add it with its labels to a folder that the daemon reads.

    The file is copied. If anything fails, nothing is added.
    """
    from jetsel.cli.models.placed import place
    from jetsel.site import config_file
    from jetsel.zoo.adding import ModelDescription
    from jetsel.zoo.labels import labels_file

    own_name = name or plain_name(onnx.stem)
    if own_name is None:
        raise typer.BadParameter(f"{onnx.name}: its name gives none for the model: use --name NAME; {RULE}")
    wanted = ModelDescription(
        name=own_name,
        family=family,
        likely_family=plain_name(labels.stem),
        labels=labels_file(labels, partial(typer.echo, err=True)),
        labels_from=labels,
        spec={
            "resize": resize,
            "interpolation": interpolation,
            "crop": crop,
            "channels": channels,
            "mean": triple(mean),
            "std": triple(std),
            "resize_px": resize_px,
        },
        input_px=size(input_px) if input_px is not None else None,
        source=source or f"added from {path_text(Path(onnx.name))}",
        notice=notice,
        version=version,
        output=output,
        exclusive=exclusive,
        origin=None if family else f"{path_text(onnx.resolve().parent)}, classes of {path_text(Path(labels.name))}",
    )
    place(onnx, wanted, config_file.applied(config), folder, replace=replace, json=json)
