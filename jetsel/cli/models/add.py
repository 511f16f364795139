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


def add(
    path: Annotated[
        Path,
        typer.Argument(metavar="FILE.onnx|FOLDER", help="ONNX file, or a folder with one and what describes it."),
    ],
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Class names in the order of the outputs: one on each line, numbered or not, JSON, a Python list, or "
            "another model's labels file (default: those that the model's file or one beside it has).",
        ),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Prepare images as torchvision, timm, ultralytics, keras or others do."),
    ] = None,
    mean: Annotated[str | None, typer.Option(metavar="A,B,C", help="Mean of each channel, in units of 0 to 1.")] = None,
    std: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="Standard deviation of each channel, in units of 0 to 1.")
    ] = None,
    name: Name = None,
    family: FamilyName = None,
    folder: Folder = None,
    version: Annotated[str, typer.Option(metavar="N.N.N", help="Version of the model.")] = "1.0.0",
    input_px: Annotated[
        str | None,
        typer.Option("--input", metavar="WxH", help="Input size, if the file leaves it open."),
    ] = None,
    resize: Annotated[
        Literal["shorter-side", "stretch"] | None,
        typer.Option(help="Scale both sides alike and crop, or stretch to the input."),
    ] = None,
    resize_px: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Shorter side after scaling, before the crop (default: the input's)."),
    ] = None,
    interpolation: Annotated[
        Interpolation | None,
        typer.Option(help="Interpolation used in training. The antialiased kinds are those of Pillow and torchvision."),
    ] = None,
    crop: Annotated[Literal["center", "none"] | None, typer.Option(help="Part that is kept after scaling.")] = None,
    channels: Annotated[Literal["rgb", "bgr"] | None, typer.Option(help="Order of the input's channels.")] = None,
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

    What no option says is read from the ONNX file's metadata and the files beside it: docs/own-models.md. The file is
    copied. If anything fails, nothing is added.
    """
    from jetsel.cli.models.placed import place
    from jetsel.site import config_file
    from jetsel.zoo.adding import ModelDescription
    from jetsel.zoo.conventions import values_of
    from jetsel.zoo.describing import Said, describe, onnx_in
    from jetsel.zoo.labels import labels_text
    from jetsel.zoo.manifest import Preprocessing

    options = (
        Said(f"--labels {labels}", {"labels": labels and labels_text(labels)}),
        Said("--mean", {"mean": mean and triple(mean)}),
        Said("--std", {"std": std and triple(std)}),
        Said("--input", {"input_px": input_px and size(input_px)}),
        Said("--resize-px", {"resize_px": resize_px}),
        Said("--interpolation", {"interpolation": interpolation}),
        Said("--channels", {"channels": channels}),
        Said("--crop", {"crop": crop}),
        Said("--resize", {"resize": resize, "crop": resize and "center"}),
        Said(f"--like {like}", values_of(like) if like else {}),
    )
    onnx = onnx_in(path)
    found = describe(onnx, options, partial(typer.echo, err=True))
    stem, title = (onnx.stem, onnx.name) if onnx == path else (path.resolve().name,) * 2
    own_name = name or plain_name(stem)
    if own_name is None:
        raise typer.BadParameter(f"{title}: its name gives none for the model: use --name NAME; {RULE}")
    classes = path_text(Path(labels.name)) if labels else found.sources["labels"]
    for line in found.lines:
        typer.echo(line, err=json)
    wanted = ModelDescription(
        name=own_name,
        family=family,
        likely_family=plain_name(labels.stem) if labels else own_name,
        labels=found.labels,
        labels_from=labels or onnx,
        spec=found.spec,
        preprocessing=Preprocessing(source=found.prepared_by),
        input_px=found.input_px,
        source=source or f"added from {path_text(Path(title))}",
        notice=notice,
        version=version,
        output=output,
        exclusive=exclusive,
        origin=None if family else f"{path_text(onnx.resolve().parent)}, classes of {classes}",
    )
    place(onnx, wanted, config_file.applied(config), folder, replace=replace, json=json)
