"""`jetsel models train-head`: train a family for the owner's own classes on an installed backbone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jetsel.cli.models.placed import Folder, Replace, checked_name
from jetsel.cli.options import ConfigFile, Json, print_json

if TYPE_CHECKING:
    from jetsel.base.config import Config
    from jetsel.calibrate.record.photographs import FoundImages
    from jetsel.zoo import Family, Model, Zoo
    from jetsel.zoo.labels import Labels
    from jetsel.zoo.placing import NewFamily


def train_head(
    photos: Annotated[
        Path,
        typer.Argument(
            metavar="IMAGES", exists=True, file_okay=False, help="Folder with one folder of images for each class."
        ),
    ],
    backbone: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Family whose models give embeddings (default: imagenet, which `jetsel models pull efficientnet-lite` "
            "makes; without a download: starter); with --name, the model of --family to build on (default: each "
            "backbone of the family).",
        ),
    ] = None,
    family: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            callback=checked_name,
            help="Name of the new family (default: the folder's); with --name, the family to add to.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            callback=checked_name,
            help="Add heads for another kind of images, as of the night, to --family: models named MODEL-KIND.",
        ),
    ] = None,
    folder: Folder = None,
    replace: Replace = False,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Train a last layer for classes of your own, for each model of a family, and add the result as a new family.

    With --name, add it to an existing family instead, for images of another kind: another light, another camera.
    The backbone does not change, and its file is shared. A fifth of the images is held out to measure the accuracy;
    then each head is trained on all of them. It needs scikit-learn: pip install 'jetsel[train]'.
    """
    import numpy as np

    from jetsel.calibrate.judge.metrics import share_interval
    from jetsel.calibrate.listing import left_out_lines
    from jetsel.calibrate.record.photographs import find_images
    from jetsel.calibrate.record.recorder import loaded_models
    from jetsel.cli.models.placed import notes_of, print_notes
    from jetsel.cli.terminal import ProgressOutput
    from jetsel.site.site import read_site
    from jetsel.train.heads import embed_images, train_heads
    from jetsel.zoo.adding import add_head

    site = read_site(config)
    values, zoo = site.config, site.zoo
    backbones, new_family, replaced = _plan_heads(zoo, photos, backbone, family, name, replace=replace)
    labels = new_family.labels
    images = find_images(photos, labels, None, need_labels=True)
    target = check_before_training(values, labels, images, folder)
    labelled = [(image.path, image.class_number) for image in images.photographs if image.class_number is not None]
    decode_px = (backbones if name is None else zoo.families[new_family.name]).decode_px  # as in the daemon
    if not json:
        print_notes(new_family.notes)
    with ProgressOutput(quiet=json) as output, loaded_models(backbones, values) as engines:
        embedded = embed_images(labelled, backbones.models, engines, site.limits, decode_px, output.step)
        trained = train_heads(embedded, labels.names, output.step)
    left_out = [*images.skipped, *embedded.unreadable]
    learned = sorted(set(embedded.hashes))
    classes = len(backbones.labels.wnids)
    models = [
        add_head(model, trained[head].head.content(learned), classes, new_family, target, replaced.get(head))
        for head, model in backbones.by_name.items()
    ]
    notes = notes_of(values, models[0].directory, new_family.name, list(trained))
    accuracies = {head: one.accuracy for head, one in trained.items() if isinstance(one.accuracy, float)}
    unmeasured = next((one.accuracy for one in trained.values() if isinstance(one.accuracy, str)), None)
    if json:
        report = {"family": new_family.name, "classes": list(labels.names), "photographs": len(embedded.classes)}
        report |= {"unreadable": len(embedded.unreadable), "notes": [*new_family.notes, *notes]}
        report |= {"accuracy": accuracies, "accuracy_reason": unmeasured}
        print_json({**report, "left_out": [(str(path), reason) for path, reason in left_out]})
        return
    typer.echo(f"family {new_family.name}: {len(labels.names)} classes, {len(embedded.classes):,} images")
    for line in left_out_lines(left_out):
        typer.echo(line)
    for head, accuracy in accuracies.items():
        count = trained[head].held_out
        half = 100 * share_interval(np.arange(count) < round(accuracy * count)).half_width
        typer.echo(f"{head}: {100 * accuracy:.1f} % right on held-out images ({count:,} images, \u00b1 {half:.0f})")
    if unmeasured is not None:
        typer.echo(f"accuracy not known: {unmeasured}")
    print_notes(notes)
    others = "OTHER_IMAGES" if name is None else "OTHER_IMAGES_OF_ALL_KINDS"
    typer.echo(f"next: jetsel calibrate {others} --family {new_family.name}; jetsel reload, if a daemon runs")


def _plan_heads(
    zoo: Zoo, photos: Path, backbone: str | None, family: str | None, name: str | None, *, replace: bool
) -> tuple[Family, NewFamily, dict[str, Model]]:
    """Return the family with the backbones, the family of the new heads, and by name the models that they replace."""
    from jetsel.base.errors import ManifestError
    from jetsel.calibrate.record.photographs import class_names
    from jetsel.zoo import pretrained
    from jetsel.zoo.labels import labels_from_names
    from jetsel.zoo.placing import family_of_heads, heads_beside

    if name is None:
        backbone = backbone or pretrained.FAMILY
        owner = zoo.families.get(pretrained.FAMILY if backbone == pretrained.NAME else backbone)
        if owner is None:
            existing = f"there are {', '.join(zoo.families)}"
            pull = f"jetsel models pull {pretrained.NAME} makes {pretrained.FAMILY}"
            raise ManifestError(f"--backbone: there is no family {backbone}; {existing}, and {pull}")
        labels = labels_from_names(class_names(photos), str(photos))
        return owner, *family_of_heads(zoo, owner, family, photos, labels, replace=replace)
    if family is None:
        raise typer.BadParameter("it adds heads to a family that exists: name it with --family", param_hint="--name")
    plan = heads_beside(zoo, family, name, backbone, photos, replace=replace)
    _check_classes(photos, class_names(photos), zoo.families[family])
    return plan


def _check_classes(photos: Path, names: Sequence[str], family: Family) -> None:
    """Raise CalibrationError unless the class folders are exactly the family's classes."""
    from jetsel.base.errors import CalibrationError
    from jetsel.calibrate.record.photographs import class_lookup

    number_of = class_lookup(family.labels, None)
    numbers = {number_of(name) for name in names}
    missing = [name for number, name in enumerate(family.labels.names) if number not in numbers]
    strange = [name for name in names if number_of(name) is None]
    repairs = [f"add a folder of images for {', '.join(missing)}"] * bool(missing)
    repairs += [f"rename or remove {', '.join(strange)}, which it does not know"] * bool(strange)
    if repairs:
        raise CalibrationError(f"{photos}: heads of family {family.name} need all its classes: {'; '.join(repairs)}")


def check_before_training(values: Config, labels: Labels, images: FoundImages, given: Path | None) -> Path:
    """Return the folder for the models, `given` or a writable one; raises CalibrationError if training would fail."""
    import os
    from collections import Counter

    from jetsel.base.errors import CalibrationError
    from jetsel.cli.models.placed import first_writable
    from jetsel.train.heads import check_can_train, check_enough

    check_can_train()
    counts = Counter(one.class_number for one in images.photographs)
    check_enough([counts[number] for number in range(len(labels.names))], labels.names, images.skipped)
    folder = given or first_writable(values)
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        raise CalibrationError(f"{folder}: you may not write there; name a folder of your own in models.paths")
    return folder
