"""`jetsel models pull`: published weights, exported to ONNX and added."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from jetsel.cli.models.options import FamilyName, Folder, Name, Replace
from jetsel.cli.options import ConfigFile, Json

TOLERANCE = 1e-4  # between torch and ONNX Runtime, of the largest logit


def pull(
    reference: Annotated[
        str, typer.Argument(metavar="torchvision:MODEL", help="A classifier, as in torchvision:mobilenet_v3_small.")
    ],
    weights: Annotated[
        str, typer.Option(metavar="NAME", help="Which of its weights: DEFAULT, IMAGENET1K_V1 and so on.")
    ] = "DEFAULT",
    name: Name = None,
    family: FamilyName = None,
    folder: Folder = None,
    mirror: Annotated[
        str | None,
        typer.Option("--from", metavar="URL", help="Another place of the same files, as in https://host/models."),
    ] = None,
    replace: Replace = False,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Download a model's published weights, export them to ONNX, and add them as `jetsel models add` does.

    Needs torch and torchvision, on this machine or another one: pip install 'jetsel[export]'.
    """
    from jetsel.cli import settings
    from jetsel.cli.models.placed import place
    from jetsel.engines.trying import largest_difference
    from jetsel.errors import ManifestError
    from jetsel.weights import Weights
    from jetsel.zoo.adding import Wanted
    from jetsel.zoo.labels import table_of
    from jetsel.zoo.published import published

    values = settings.read(settings.locate(config))
    with tempfile.TemporaryDirectory(prefix="jetsel-") as scratch:
        found = published(reference, weights, mirror, Path(scratch), _tell)
        batch, due = found.example
        width_px, height_px = found.input_px
        exported = Weights(found.name, found.onnx, "", height_px, width_px, due.shape[1])
        apart = largest_difference(exported, values.models.threads, batch, due)
        if apart > TOLERANCE:
            raise ManifestError(
                f"{reference}: ONNX Runtime and torch differ by {apart:.1e} of the largest logit on the same weights, "
                f"more than {TOLERANCE:.0e}: pull another model"
            )
        wanted = Wanted(
            name=name or found.name,
            family=family,
            likely_family=found.trained_on,
            labels=table_of(found.classes, reference),
            labels_from=Path(reference),
            spec=found.spec,
            input_px=found.input_px,
            source=found.source,
            notice=found.notice,
        )
        place(found.onnx, wanted, values, folder, replace=replace, json=json)


def _tell(line: str) -> None:
    """Say what is done next to whoever waits for it."""
    if sys.stderr.isatty():
        typer.echo(line, err=True)
