"""`jetsel models add --check`: test on labelled images whether a model's preprocessing is the one of its training."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from jetsel.base.errors import ManifestError

if TYPE_CHECKING:
    from jetsel.base.config import Config
    from jetsel.base.weights import Weights
    from jetsel.calibrate.record.preprocessing import VariantComparison
    from jetsel.image import InputSpec
    from jetsel.zoo import Labels, Manifest
    from jetsel.zoo.manifest import Preprocessing


def proven(
    images: Path, values: Config, weights: Weights, labels: Labels, manifest: Manifest | None, *, quiet: bool
) -> Preprocessing | None:
    """Compare a model's preprocessing with other ways, and return the description for the manifest.

    manifest: None if the preprocessing is unknown. quiet: print no table. Raises ManifestError if another way is
    significantly better or the preprocessing is unknown, CalibrationError or EngineFailedError.
    """
    from jetsel.calibrate.record.preprocessing import CURRENT, preprocessing_variants

    tried = preprocessing_variants(None if manifest is None else manifest.input, weights.width_px, weights.height_px)
    comparison = _compared(images, values, weights, labels, tried, quiet=quiet)
    if manifest is None:
        best = max(tried, key=comparison.count)
        advice = f"it is right most often with {best}: add it with that option"
        if not comparison.is_proven(best):
            advice = "no convention is better than a guess: check the order of --labels, or give --mean and --std"
        raise ManifestError(f"{weights.name}: nothing describes how its images are prepared; {advice}")
    used = f"{comparison.count(CURRENT)} of {comparison.images} images"
    if (better := comparison.better_variant) is not None:
        raise ManifestError(
            f"{weights.name} is right on {used} as it is described, and on {comparison.count(better)} with {better}: "
            "add it with that option instead"
        )
    before = manifest.preprocessing
    if before is None or comparison.is_proven(CURRENT):
        return before and before.checked(comparison.images)
    typer.echo(f"note: it is right on {used}, which a guess may be too: check the order of the labels", err=quiet)
    return before


def _compared(
    images: Path, values: Config, weights: Weights, labels: Labels, tried: dict[str, InputSpec], *, quiet: bool
) -> VariantComparison:
    """Run the model on the images with each way, print a table, and return the result; raises ManifestError."""
    from jetsel.calibrate.record.photographs import find_images
    from jetsel.calibrate.record.preprocessing import (
        CURRENT,
        LEAST_IMAGES,
        VariantComparison,
        draw_images,
        right_by_variant,
    )
    from jetsel.cli.terminal import console, table
    from jetsel.engines.onnx import OnnxEngine
    from jetsel.site.configured import limits_of

    images_found = find_images(images, labels, None, need_labels=True)
    shown = draw_images(images_found.photographs)
    with closing(OnnxEngine(weights.name, weights.path, concurrency=1, threads=values.models.threads)) as engine:
        limits = limits_of(values)
        comparison = VariantComparison.of(
            ((one, right_by_variant(one, engine.infer, tried, limits)) for one in shown), tried
        )
    out = len(images_found.skipped) + len(shown) - comparison.images
    if not comparison.is_enough:
        raise ManifestError(
            f"--check {images}: {comparison.images} images of {len(comparison.classes)} of the model's classes are too "
            f"few, {out} files are left out: give {LEAST_IMAGES} to 100 images, in a folder for each of two classes or "
            "more"
        )
    if not quiet:
        rows = table("images prepared", f">right of {comparison.images}", "")
        for way in tried:
            rows.add_row(way, str(comparison.count(way)), "used" * (way == CURRENT))
        console().print(rows)
        if out:
            typer.echo(f"left out: {out} files: other classes, or no images that can be read")
    return comparison
