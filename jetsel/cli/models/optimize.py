"""`jetsel models optimize`: make a cheaper model from another by one method, compare both, and add it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from jetsel.cli.options import ConfigFile, Json, print_json

if TYPE_CHECKING:
    from jetsel.train.optimize.making import ParentComparison
    from jetsel.zoo import Labels


def optimize(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Model to make a cheaper one from.")],
    method: Annotated[
        Literal["int8", "fp16", "prune", "factorise"],
        typer.Option(help="8-bit or 16-bit numbers, or half of the operations by pruning or factorising."),
    ],
    images: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            exists=True,
            help="Images to learn from and to compare on, in a folder for each class if their classes are known.",
        ),
    ] = None,
    minutes: Annotated[float, typer.Option(min=0.1, help="Time limit of fine-tuning, in minutes.")] = 20.0,
    family: Annotated[
        str | None, typer.Option(metavar="NAME", help="Family of MODEL, if the name is ambiguous.")
    ] = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Make one cheaper model from MODEL, compare the two, and add it to the family as MODEL-METHOD.

    int8 needs about 100 images; prune and factorise need labelled ones and pip install 'jetsel[export]'.
    An interrupted command continues when it is run again. Whether the model is used, `jetsel calibrate` decides.
    """
    from jetsel.base.state import state_folder
    from jetsel.cli.models.candidates import BACKEND
    from jetsel.cli.models.placed import first_writable, notes_of, print_notes
    from jetsel.cli.terminal import ProgressOutput
    from jetsel.site.site import read_site
    from jetsel.train.optimize.making import TRAINED, OptimizeJob, check_images, check_method, make_model

    site = read_site(config)
    owner, parent = site.zoo.find(model, family)
    check_method(owner, parent, method)
    values, manifest = site.config, parent.manifest
    listed_images = [] if images is None else _list_images(images, owner.labels, need_labels=method in TRAINED)
    check_images(method, len(listed_images))
    order = OptimizeJob(
        parent=parent,
        family=owner,
        method=method,
        images=listed_images,
        limits=site.limits,
        threads=values.models.threads,
        symmetric=values.models.backends.get(manifest.name, values.models.backend) == BACKEND,
        most_s=60 * minutes,
        work=state_folder("optimize") / f"{owner.name}-{manifest.name}-{manifest.identity[:12]}",
    )
    target = first_writable(values)
    with ProgressOutput(quiet=json) as output:
        new_model, comparison = make_model(order, target, output.step)
    notes = notes_of(values, target, owner.name, [order.name])
    if json:
        import msgspec

        print_json({"model": order.name, "directory": str(target), **msgspec.to_builtins(comparison), "notes": notes})
        return
    _show(order.name, manifest.name, comparison)
    print_notes(notes)
    typer.echo(f"added {order.name} to family {owner.name} in {new_model.directory}")
    typer.echo("next: jetsel reload, and jetsel calibrate IMAGES, which decides whether it is used")


def _list_images(images: Path, labels: Labels, *, need_labels: bool) -> list[tuple[Path, int | None]]:
    """Return images with their classes' numbers, or None for each without folders of classes, unless need_labels."""
    from jetsel.base.errors import CalibrationError
    from jetsel.calibrate.record.photographs import find_images

    try:
        found_images = find_images(images, labels, None, need_labels=True)
    except CalibrationError:
        if need_labels:
            raise
        found_images = find_images(images, labels, None, need_labels=False)
    return [(one.path, one.class_number) for one in found_images.photographs]


def _show(name: str, parent: str, comparison: ParentComparison) -> None:
    """Print a table with the new model's accuracy, time and size, and in brackets those of its parent."""
    from jetsel.cli.terminal import console, milliseconds, table

    def percentages(share: float | None, parent_share: float | None) -> str:
        return "-" if share is None or parent_share is None else f"{100 * share:.1f} ({100 * parent_share:.1f})"

    rows = table("model", ">right %", ">agrees %", ">ms", ">MB")
    rows.title = f"on {comparison.images:,} images that it did not learn from ({parent} in brackets)"
    rows.add_row(
        name,
        percentages(comparison.right, comparison.parent_right),
        "-" if comparison.agreement is None else f"{100 * comparison.agreement:.1f}",
        f"{milliseconds(comparison.latency_ms)} ({milliseconds(comparison.parent_latency_ms)})",
        f"{comparison.file_bytes / 1e6:.2f} ({comparison.parent_file_bytes / 1e6:.2f})",
    )
    console().print(rows)
