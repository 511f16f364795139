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


def check_preprocessing(
    images: Path, values: Config, weights: Weights, labels: Labels, manifest: Manifest | None, *, quiet: bool
) -> Preprocessing | None:
    """Check on labelled images that a model's preprocessing beats other known ways; return it for the manifest.

    manifest: None if the preprocessing is unknown, which ends in an error. quiet: print no table. Raises ManifestError
    if another way is significantly better, CalibrationError or EngineFailedError.
    """
    from jetsel.calibrate.record.preprocessing import CURRENT, preprocessing_variants

    specs = preprocessing_variants(None if manifest is None else manifest.input, weights.width_px, weights.height_px)
    comparison = _compare(images, values, weights, labels, specs, quiet=quiet)
    if manifest is None:
        best = max(specs, key=comparison.count)
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
    described = manifest.preprocessing
    if described is None or comparison.is_proven(CURRENT):
        return described and described.checked(comparison.images)
    typer.echo(f"note: it is right on {used}, which a guess may be too: check the order of the labels", err=quiet)
    return described


def _compare(
    images: Path, values: Config, weights: Weights, labels: Labels, specs: dict[str, InputSpec], *, quiet: bool
) -> VariantComparison:
    """Run the model on images with each preprocessing in `specs`, print a table, and return how often each is right.

    Raises ManifestError if there are too few images.
    """
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
    sample = draw_images(images_found.photographs)
    with closing(OnnxEngine(weights.name, weights.path, concurrency=1, threads=values.models.threads)) as engine:
        limits = limits_of(values)
        comparison = VariantComparison.of(
            ((image, right_by_variant(image, engine.infer, specs, limits)) for image in sample), specs
        )
    n_left_out = len(images_found.skipped) + len(sample) - comparison.images
    if not comparison.is_enough:
        raise ManifestError(
            f"--check {images}: {comparison.images} images of {len(comparison.classes)} of the model's classes are too "
            f"few, {n_left_out} files are left out: give {LEAST_IMAGES} to 100 images, in a folder for each of two "
            "classes or more"
        )
    if not quiet:
        rows = table("images prepared", f">right of {comparison.images}", "")
        for way in specs:
            rows.add_row(way, str(comparison.count(way)), "used" * (way == CURRENT))
        console().print(rows)
        if n_left_out:
            typer.echo(f"left out: {n_left_out} files: other classes, or no images that can be read")
    return comparison
