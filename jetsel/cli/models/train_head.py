"""`jetsel models train-head`: a family for the owner's own classes, on a backbone that is there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jetsel.cli.models.placed import Folder, Replace, checked_name
from jetsel.cli.options import ConfigFile, Json, print_json

if TYPE_CHECKING:
    from jetsel.base.config import Config
    from jetsel.calibrate.record import FoundImages
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
    folder: Folder = None,
    replace: Replace = False,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Train a last layer for classes of your own, for each model of a family, and add the result as a new family.

    The backbone does not change, and its file is shared. A fifth of the images is held out to measure the accuracy;
    then each head is trained on all of them. It needs scikit-learn: pip install 'jetsel[train]'.
    """
    from jetsel.calibrate.listing import left_out_lines
    from jetsel.calibrate.record import find, loaded_models
    from jetsel.calibrate.record.photographs import class_names
    from jetsel.cli.models.placed import notes_of
    from jetsel.cli.terminal import Output
    from jetsel.site.site import read_site
    from jetsel.train.heads import see, train
    from jetsel.zoo.adding import add_head, family_of_heads
    from jetsel.zoo.labels import Labels, table_of

    site = read_site(config)
    values, zoo = site.config, site.zoo
    known = _backbone(zoo, backbone)
    names = class_names(photos)
    made, there = family_of_heads(zoo, known, family, photos, table_of(names, str(photos)), replace=replace)
    labels = Labels.parse(made.labels, photos)
    found = find(photos, labels, None, need_labels=True)
    place = check_before(values, labels, found, folder)
    shown = [(one.path, one.class_number) for one in found.photographs if one.class_number is not None]
    with Output(quiet=json) as output, loaded_models(known, values) as engines:
        seen = see(shown, known.models, engines, site.limits, known.decode_px, output.step)
        trained = train(seen, labels.names, output.step)
    left_out = [*found.skipped, *seen.unreadable]
    learned = sorted(set(seen.hashes))
    classes = len(known.labels.wnids)
    models = [
        add_head(model, trained[name].head.content(learned), classes, made, place, there.get(name))
        for model in known.models
        for name in [model.manifest.name]
    ]
    notes = [*made.notes, *notes_of(values, models[0].directory, made.name, list(trained))]
    accuracies = {name: one.accuracy for name, one in trained.items() if isinstance(one.accuracy, float)}
    unmeasured = next((one.accuracy for one in trained.values() if isinstance(one.accuracy, str)), None)
    if json:
        told = {"family": made.name, "classes": list(labels.names), "photographs": len(seen.classes)}
        told |= {"unreadable": len(seen.unreadable), "notes": notes}
        told |= {"accuracy": accuracies, "accuracy_reason": unmeasured}
        print_json({**told, "left_out": [(str(path), reason) for path, reason in left_out]})
        return
    typer.echo(f"family {made.name}: {len(names)} classes, {len(seen.classes):,} images")
    for line in left_out_lines(left_out):
        typer.echo(line)
    for name, accuracy in accuracies.items():
        typer.echo(f"{name}: {100 * accuracy:.1f} % right on held-out images")
    if unmeasured is not None:
        typer.echo(f"accuracy not known: {unmeasured}")
    for note in notes:
        typer.echo(f"note: {note}")
    typer.echo(f"next: jetsel reload, and jetsel calibrate OTHER_IMAGES --family {made.name}")


def check_before(values: Config, labels: Labels, found: FoundImages, given: Path | None) -> Path:
    """Return the folder for the models; raises CalibrationError, before any image is read, if training must fail.

    given: the folder that the owner names, None for the first that may be written.
    """
    import os
    from collections import Counter

    from jetsel.base.errors import CalibrationError
    from jetsel.cli.models.placed import first_writable
    from jetsel.train.heads import check_can_train, check_enough

    check_can_train()
    counts = Counter(one.class_number for one in found.photographs)
    check_enough([counts[number] for number in range(len(labels.names))], labels.names, found.skipped)
    folder = given or first_writable(values)
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
