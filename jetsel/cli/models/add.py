"""`jetsel models add`: check an ONNX file by running it, and put it where the daemon finds it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from jetsel.cli.models.options import FamilyName, Folder, Name, Replace, plain_name, size, triple
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
        typer.Argument(metavar="FILE.onnx", help="The model, its weights inside.", callback=_checked, is_eager=True),
    ],
    labels: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="Its classes in the order of its outputs: a text of one name a line, a JSON list of names, or the "
            "labels file of another model (identifier, tab, names).",
        ),
    ],
    mean: Annotated[str, typer.Option(metavar="A,B,C", help="Of each channel, in units of 0 to 1.")],
    std: Annotated[str, typer.Option(metavar="A,B,C", help="Of each channel, in units of 0 to 1.")],
    name: Name = None,
    family: FamilyName = None,
    folder: Folder = None,
    version: Annotated[str, typer.Option(metavar="N.N.N", help="Of the model.")] = "1.0.0",
    input_px: Annotated[
        str | None,
        typer.Option("--input", metavar="WxH", help="The size that it was trained for, where the file leaves it open."),
    ] = None,
    resize: Annotated[
        Literal["shorter-side", "stretch"],
        typer.Option(help="Scale both sides alike and crop, or each to the input's."),
    ] = "shorter-side",
    resize_px: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Scale the shorter side to this, then crop. Left out: until the input is covered."
        ),
    ] = None,
    interpolation: Annotated[
        Interpolation,
        typer.Option(help="As in its training; the antialiased ones are Pillow's, and so torchvision's."),
    ] = "antialiased-bilinear",
    crop: Annotated[Literal["center", "none"], typer.Option(help="What is kept after scaling.")] = "center",
    channels: Annotated[Literal["rgb", "bgr"], typer.Option(help="The order of the input's channels.")] = "rgb",
    output: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The tensor with the logits. Left out: `logits`, or the only output."),
    ] = None,
    source: Annotated[str | None, typer.Option(metavar="TEXT", help="Where it came from. Left out: its file.")] = None,
    notice: Annotated[str | None, typer.Option(metavar="TEXT", help="What its users must know.")] = None,
    replace: Replace = False,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Check a model by running it, and add it with its labels to a folder that the daemon reads.

    It is copied: the file that you name is not needed any more. Whatever fails, nothing is added.
    """
    from jetsel.cli.models.placed import place
    from jetsel.site import config_file
    from jetsel.zoo.adding import Wanted
    from jetsel.zoo.labels import labels_file

    wanted = Wanted(
        name=name or plain_name(onnx.stem),
        family=family,
        likely_family=plain_name(labels.stem),
        labels=labels_file(labels),
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
        source=source or f"added from {onnx.name}",
        notice=notice,
        version=version,
        output=output,
    )
    place(onnx, wanted, config_file.applied(config), folder, replace=replace, json=json)
