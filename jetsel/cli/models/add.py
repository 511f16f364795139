"""`jetsel models add`: check an ONNX file by running it, and add it to a folder that the daemon reads."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from jetsel.base.names import RULE, path_text, plain_name
from jetsel.cli.models.placed import (
    Channels,
    FamilyName,
    Folder,
    Interpolation,
    Like,
    Mean,
    Name,
    Replace,
    Resize,
    ResizePx,
    Std,
    parse_size,
    parse_triple,
)
from jetsel.cli.options import ConfigFile, Json


def add(
    path: Annotated[
        Path, typer.Argument(metavar="FILE.onnx|FOLDER", help="ONNX file, or a folder with one and what describes it.")
    ],
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Class names in the order of the outputs: one on each line, numbered or not, JSON, a Python list, or "
            "another model's labels file (default: those that the model's file or one beside it has).",
        ),
    ] = None,
    like: Like = None,
    mean: Mean = None,
    std: Std = None,
    name: Name = None,
    family: FamilyName = None,
    folder: Folder = None,
    version: Annotated[str, typer.Option(metavar="N.N.N", help="Version of the model.")] = "1.0.0",
    input_px: Annotated[
        str | None, typer.Option("--input", metavar="WxH", help="Input size, if the file leaves it open.")
    ] = None,
    resize: Resize = None,
    resize_px: ResizePx = None,
    interpolation: Interpolation = None,
    crop: Annotated[Literal["center", "none"] | None, typer.Option(help="Part that is kept after scaling.")] = None,
    channels: Channels = None,
    output: Annotated[
        str | None, typer.Option(metavar="NAME", help="Output with the logits (default: `logits`, or the only output).")
    ] = None,
    exclusive: Annotated[
        bool,
        typer.Option("--exclusive", help="Take each image to have exactly one class, if the model ends in a sigmoid."),
    ] = False,
    source: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Origin of the model (default: the file's name).")
    ] = None,
    notice: Annotated[str | None, typer.Option(metavar="TEXT", help="Notice for users of the model.")] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            "--check",
            metavar="IMAGES",
            exists=True,
            help="Labelled images, 10 to 100 in a folder for each class, that prove how images are prepared.",
        ),
    ] = None,
    replace: Replace = False,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Check a model by running it, and add it with its labels to a folder that the daemon reads.

    What no option says is read from the ONNX file's metadata and the files beside it: docs/own-models.md. With --check,
    the model runs on labelled images prepared so and in other known ways, and is refused if another way is surely
    better. The file is copied. If anything fails, nothing is added.
    """
    from jetsel.cli.models.checking import check_preprocessing
    from jetsel.cli.models.placed import add_to_folder, print_added
    from jetsel.site import config_file
    from jetsel.zoo.adding import ModelDescription
    from jetsel.zoo.conventions import convention_values
    from jetsel.zoo.describing import SourceValues, describe, find_onnx
    from jetsel.zoo.labels import read_labels_text
    from jetsel.zoo.manifest import Preprocessing, Provenance
    from jetsel.zoo.onnx_model import read_file

    options = (
        SourceValues(f"--labels {labels and path_text(labels)}", {"labels": labels and read_labels_text(labels)}),
        SourceValues("--mean", {"mean": mean and parse_triple(mean)}),
        SourceValues("--std", {"std": std and parse_triple(std)}),
        SourceValues("--input", {"input_px": input_px and parse_size(input_px)}),
        SourceValues("--resize-px", {"resize_px": resize_px}),
        SourceValues("--interpolation", {"interpolation": interpolation}),
        SourceValues("--channels", {"channels": channels}),
        SourceValues("--crop", {"crop": crop}),
        SourceValues("--resize", {"resize": resize, "crop": resize and "center"}),
        SourceValues(f"--like {like}", convention_values(like) if like else {}),
    )
    onnx = find_onnx(path)
    file = read_file(onnx)
    described = describe(file, options, partial(typer.echo, err=True))
    stem, title = (onnx.stem, onnx.name) if onnx == path else (path.resolve().name,) * 2
    own_name = name or plain_name(stem)
    if own_name is None:
        raise typer.BadParameter(f"{title}: its name gives none for the model: use --name NAME; {RULE}")
    classes = path_text(Path(labels.name)) if labels else described.sources["labels"]
    is_described = {"mean", "std"} <= described.spec.keys()
    for line in described.lines:
        typer.echo(line, err=json)
    description = ModelDescription(
        name=own_name,
        family=family,
        likely_family=plain_name(labels.stem) if labels else own_name,
        labels=described.labels,
        labels_from=labels or onnx,
        spec=described.spec,
        preprocessing=None if check and not is_described else Preprocessing(source=described.prepared_by),
        input_px=described.input_px,
        provenance=Provenance(source=source or f"added from {path_text(Path(title))}", notice=notice),
        version=version,
        output=output,
        exclusive=exclusive,
        origin=None if family else f"{path_text(onnx.resolve().parent)}, classes of {classes}",
    )
    values = config_file.locate_and_read(config)
    prove = None if check is None else partial(check_preprocessing, check, values, quiet=json)
    added = add_to_folder(file, description, values, folder, replace=replace, check=prove)
    print_added(added, description.provenance.source, values, json=json)
