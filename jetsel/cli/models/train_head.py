"""`jetsel models train-head`: a family for the owner's own classes, on a backbone that is there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jetsel.cli.models.options import Replace, checked_name
from jetsel.cli.options import ConfigFile, Json, print_json

if TYPE_CHECKING:
    from jetsel.base.config import Config
    from jetsel.zoo import Family, Zoo
    from jetsel.zoo.labels import Labels


def train_head(
    photos: Annotated[
        Path,
        typer.Argument(
            metavar="IMAGES", exists=True, file_okay=False, help="Folder with one folder of images for each class."
        ),
    ],
    backbone: Annotated[
        str, typer.Option(metavar="NAME", help="Family whose models give embeddings.")
    ] = "efficientnet-lite",
    family: Annotated[
        str | None,
        typer.Option(metavar="NAME", callback=checked_name, help="Name of the new family (default: the folder's)."),
    ] = None,
    replace: Replace = False,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Train a last layer for classes of your own, for each model of a family, and add the result as a new family.

    The backbone does not change, and its file is shared. A fifth of the images is held out to measure the accuracy;
    then each head is trained on all of them. It needs scikit-learn: pip install 'jetsel[train]'.
    """
    from jetsel.base.errors import CalibrationError
    from jetsel.base.files import sha256_of
    from jetsel.calibrate.record import find, loaded_models
    from jetsel.calibrate.record.photographs import labels_in, left_out_lines
    from jetsel.cli.models.placed import notes_of
    from jetsel.cli.terminal import Output
    from jetsel.site.site import read_site
    from jetsel.train.heads import see, train
    from jetsel.zoo.adding import add_head, family_of_heads
    from jetsel.zoo.labels import Labels, table_of

    site = read_site(config)
    values, zoo = site.config, site.zoo
    known = _backbone(zoo, backbone)
    if not labels_in(photos):
        raise CalibrationError(f"{photos}: it has no class folders; make one folder of images for each class")
    names = sorted(entry.name for entry in photos.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    made, there = family_of_heads(zoo, known, family, photos, table_of(names, str(photos)), replace=replace)
    labels = Labels.parse(made.labels, photos)
    found = find(photos, labels, None, need_labels=True)
    folder = check_before(values, labels, [one.class_number for one in found.photographs])
    shown = [(one.path, one.class_number) for one in found.photographs if one.class_number is not None]
    with Output(quiet=json) as output, loaded_models(known, values) as engines:
        seen = see(shown, known.models, engines, site.limits, known.decode_px, output.step)
        trained = train(seen, labels.names, output.step)
    unreadable = [(str(path), f"unreadable: {reason}") for path, reason in seen.unreadable]
    left_out = [*((str(one.path), one.reason) for one in found.skipped), *unreadable]
    learned = sorted({sha256_of(path) for path, _ in shown if path.is_file()})
    classes = len(known.labels.wnids)
    models = [
        add_head(model, trained[name].head.content(learned), classes, made, folder, there.get(name))
        for model in known.models
        for name in [model.manifest.name]
    ]
    notes = [*made.notes, *notes_of(values, models[0].directory, made.name, list(trained))]
    accuracies = {name: one.accuracy for name, one in trained.items()}
    if json:
        told = {"family": made.name, "classes": list(labels.names), "photographs": len(seen.classes)}
        print_json(
            {**told, "unreadable": len(seen.unreadable), "accuracy": accuracies, "notes": notes, "left_out": left_out}
        )
        return
    typer.echo(f"family {made.name}: {len(names)} classes, {len(seen.classes):,} images")
    for line in left_out_lines(left_out):
        typer.echo(line)
    for name, accuracy in accuracies.items():
        typer.echo(f"{name}: {100 * accuracy:.1f} % right on held-out images")
    for note in notes:
        typer.echo(f"note: {note}")
    typer.echo(f"next: jetsel reload, and jetsel calibrate OTHER_IMAGES --family {made.name}")


def check_before(values: Config, labels: Labels, classes: list[int | None]) -> Path:
    """Return the folder for the models; raises CalibrationError, before any image is read, if training must fail."""
    import os

    from jetsel.base.errors import CalibrationError
    from jetsel.cli.models.placed import first_writable
    from jetsel.train.heads import check_can_train, check_enough

    check_can_train()
    check_enough([classes.count(number) for number in range(len(labels.names))], labels.names)
    folder = first_writable(values)
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        raise CalibrationError(f"{folder}: you may not write there; name a folder of your own in models.paths")
    return folder


def _backbone(zoo: Zoo, name: str) -> Family:
    """Return the family that is meant; raises ManifestError that names the repair."""
    from jetsel.base.errors import ManifestError
    from jetsel.zoo import pretrained

    found = zoo.families.get(pretrained.FAMILY if name == pretrained.NAME else name)
    if found is None:
        repair = f"jetsel models pull {name}" if name == pretrained.NAME else "see jetsel models list"
        raise ManifestError(f"there is no family {name} to train on: {repair}")
    return found
