"""`jetsel models pull efficientnet-lite`: the rungs of a whole family, each compared with the reference and added."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable
from dataclasses import replace as with_
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from jetsel.base.config import Config
    from jetsel.zoo import Model
    from jetsel.zoo.pretrained import Rung


def pull_family(
    values: Config, family: str | None, folder: Path | None, brought: Path | None, *, replace: bool, json: bool
) -> None:
    """Add every rung that is not there yet, and print the family with how long each takes here.

    Raises ManifestError or EngineFailedError that names the repair; what was added before stays, and the same command
    goes on.
    """
    from jetsel.cli.models.candidates import BACKEND
    from jetsel.cli.models.placed import notes_of
    from jetsel.zoo.pretrained import rungs

    symmetric = values.models.backend == BACKEND
    with tempfile.TemporaryDirectory(prefix="jetsel-") as scratch:
        found = rungs(brought, Path(scratch), tell, symmetric=symmetric)
        models, added = add_rungs(found, values, family, folder, replace=replace)
    notes = notes_of(values, models[0].directory, models[0].manifest.family, [model.manifest.name for model in models])
    _print(models, added, notes, json=json)


def add_rungs(
    rungs: Iterable[Rung], values: Config, family: str | None, folder: Path | None, *, replace: bool
) -> tuple[list[Model], list[str]]:
    """Return the model of each rung, and the names of those that were added; the others were there already.

    folder: where they are wanted, None for any that the daemon reads. Raises as `pull_family` does.
    """
    from jetsel.cli.models.placed import put
    from jetsel.zoo import model_folders, scan
    from jetsel.zoo.manifest import DerivedFrom
    from jetsel.zoo.store import IN_8_BITS

    folders = model_folders(values.models) if folder is None else [folder] if folder.is_dir() else []
    families = scan(folders).families.values()
    known = [model for one in families if family in (None, one.name) for model in one.models]
    models: list[Model] = []
    added: list[str] = []
    for rung in rungs:
        there = None if replace else _there(known, rung)
        if there is None:
            tell(f"trying {rung.wanted.name}")
            _compare(values, rung)
            twin = next((model.manifest for model in models if model.manifest.name == rung.twin), None)
            derived = None if twin is None else DerivedFrom(name=twin.name, identity=twin.identity, recipe=IN_8_BITS)
            wanted = with_(rung.wanted, family=family, derived_from=derived)
            there = put(rung.onnx, wanted, values, folder, replace=replace).model
            added.append(there.manifest.name)
        models.append(there)
    return models, added


def tell(line: str) -> None:
    """Print what is done next."""
    if sys.stderr.isatty():
        typer.echo(line, err=True)


def _there(known: list[Model], rung: Rung) -> Model | None:
    """The very same model, if it was added before; one with a head of its own is another."""
    same = (rung.wanted.name, rung.wanted.tensors_sha256, rung.wanted.recipe, rung.side_px)
    return next(
        (
            model
            for model in known
            for manifest in [model.manifest]
            if (manifest.name, manifest.tensors_sha256, manifest.recipe, manifest.input.width_px) == same
            and manifest.head is None
        ),
        None,
    )


def _compare(values: Config, rung: Rung) -> None:
    """Raise ManifestError if ONNX Runtime answers otherwise than the reference did."""
    from jetsel.base.errors import ManifestError
    from jetsel.base.weights import Weights
    from jetsel.engines.trying import largest_difference
    from jetsel.zoo.pretrained import drawn

    weights = Weights(rung.wanted.name, rung.onnx, "", rung.side_px, rung.side_px, rung.expected.shape[1])
    apart = largest_difference(weights, values.models.threads, drawn(rung.side_px), rung.expected)
    if not apart <= rung.tolerance:  # nor if it is not finite
        raise ManifestError(
            f"{rung.wanted.name}: ONNX Runtime differs from the reference by {apart:.1e} of the largest logit, more "
            f"than {rung.tolerance:.0e}: install another version of onnxruntime"
        )


def _print(models: list[Model], added: list[str], notes: list[str], *, json: bool) -> None:
    from jetsel.cli.options import print_json
    from jetsel.cli.terminal import console, milliseconds, table

    first = models[0].manifest
    if json:
        import msgspec

        print_json(
            {"models": [msgspec.to_builtins(model.manifest) for model in models], "added": added, "notes": notes}
        )
        return
    shown = table("model", "input", ">ms per image here", ">million parameters", "file")
    shown.title = f"family {first.family}, in {models[0].directory}"
    for manifest in (model.manifest for model in models):
        sides = f"{manifest.input.width_px} x {manifest.input.height_px}"
        shown.add_row(
            manifest.name, sides, milliseconds(manifest.cost_ms), f"{manifest.parameters / 1e6:.1f}", manifest.file
        )
    console().print(shown)
    if len(added) < len(models):
        there = "all models" if not added else f"{len(models) - len(added)} of {len(models)} models"
        typer.echo(f"{there} were there already: --replace writes them again, --folder DIR writes another copy")
    typer.echo(f"notice: {first.notice}")
    for note in notes:
        typer.echo(f"note: {note}")
    if added:
        typer.echo("to use them in a running daemon: jetsel reload")
