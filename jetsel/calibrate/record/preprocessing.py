"""Find the preprocessing that a model was trained with, by comparing known ways on a few labelled images."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, zip_longest
from typing import Literal

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from jetsel import image
from jetsel.base.errors import BadImageError, ImageTooLargeError, ManifestError
from jetsel.calibrate.binomial import binomial_tail
from jetsel.calibrate.record.contents import drawn_order
from jetsel.calibrate.record.cuts import decode_cut
from jetsel.calibrate.record.examine import Examiner
from jetsel.calibrate.record.photographs import Labelled
from jetsel.calibrate.record.workers import Workers
from jetsel.engines import Output
from jetsel.image import InputSpec
from jetsel.zoo import Model
from jetsel.zoo.conventions import CONVENTIONS, convention_spec
from jetsel.zoo.placing import rewrite_manifest

LEAST_IMAGES, MOST_IMAGES = 10, 100
MOST_VARIANTS = 6  # in a calibration, where the comparison was not requested
CURRENT = "as described"  # name of the preprocessing that the manifest describes
_RISK = 0.01  # error probability of a test


def preprocessing_variants(current: InputSpec | None, width_px: int, height_px: int) -> dict[str, InputSpec]:
    """Return the kinds of preprocessing to compare, by the command-line option that chooses each.

    They are `current`, conventions with other channels or levels, and `current` with other channels or resizing; all
    conventions if `current` is None.
    """
    conventions = {f"--like {name}": convention_spec(name, width_px, height_px) for name in CONVENTIONS}
    if current is None:
        return conventions
    names = {
        (spec.channels, spec.mean, spec.std): name
        for name, spec in reversed([(CURRENT, current), *conventions.items()])
    }
    others = {name: spec for name, spec in conventions.items() if name in names.values()}
    channels: Literal["rgb", "bgr"] = "bgr" if current.channels == "rgb" else "rgb"
    resize: Literal["stretch", "shorter-side"] = "stretch" if current.resize == "shorter-side" else "shorter-side"
    return {
        CURRENT: current,
        **others,
        f"--channels {channels}": replace(current, channels=channels),
        f"--resize {resize}": replace(current, resize=resize, crop="center", resize_px=None),
    }


def right_by_variant(
    labelled: Labelled,
    infer: Callable[[NDArray[np.float32]], Output],
    variants: Mapping[str, InputSpec],
    limits: image.Limits,
) -> list[bool] | None:
    """Return whether the model is right with each kind of preprocessing, None if the image cannot be used.

    infer: runs the model on a batch of one; may raise EngineFailedError.
    """
    decode_px = max(spec.shorter_px for spec in variants.values())
    try:
        photograph = decode_cut(image.read_file(labelled.path, limits), labelled.cut, limits, decode_px).photograph
    except (OSError, BadImageError, ImageTooLargeError):
        return None
    logits = [infer(image.model_input(photograph, spec)).logits for spec in variants.values()]
    return [int(answer.argmax()) == labelled.class_number for answer in logits]


@dataclass(frozen=True, eq=False)
class VariantComparison:
    """A model's accuracy with several kinds of preprocessing (variants) on n labelled images."""

    right: Mapping[str, NDArray[np.bool_]]  # variant -> whether the model is right, (n,)
    classes: Mapping[int | None, int]  # class number -> number of images

    @classmethod
    def of(cls, outcomes: Iterable[tuple[Labelled, list[bool] | None]], variants: Iterable[str]) -> VariantComparison:
        """Collect pairs of an image and its result of `right_by_variant`; unusable images, with None, are skipped."""
        rows = [(one.class_number, right) for one, right in outcomes if right is not None]
        columns = zip(*(right for _, right in rows), strict=True) if rows else ()
        right = {variant: np.array(column) for variant, column in zip(variants, columns, strict=False)}
        return cls(right, Counter(number for number, _ in rows))

    @property
    def images(self) -> int:
        """Number of images that were used."""
        return sum(self.classes.values())

    @property
    def is_enough(self) -> bool:
        """Whether there are enough images and classes for a comparison."""
        return self.images >= LEAST_IMAGES and len(self.classes) > 1

    def count(self, variant: str) -> int:
        """Return the number of images on which the model is right with this preprocessing."""
        return int(self.right[variant].sum())

    def is_proven(self, variant: str) -> bool:
        """Whether the model is significantly more accurate than always answering the most frequent class."""
        most_frequent_share = max(self.classes.values()) / self.images
        return binomial_tail(self.images - self.count(variant), self.images, 1 - most_frequent_share) < _RISK

    @property
    def better_variant(self) -> str | None:
        """The best of the variants that are significantly better than CURRENT, None if none is.

        McNemar's exact test (Psychometrika 12, 1947), one-sided, on the images on which exactly one of the two is
        right. The risk is divided by the number of comparisons (Bonferroni).
        """
        is_right_now, better = self.right[CURRENT], []
        for variant, is_right in self.right.items():
            lost, won = int((is_right_now & ~is_right).sum()), int((is_right & ~is_right_now).sum())
            if won and binomial_tail(lost, lost + won, 0.5) < _RISK / (len(self.right) - 1):
                better.append(variant)
        return max(better, key=self.count, default=None)


def draw_images(images: Iterable[Labelled]) -> list[Labelled]:
    """Return up to MOST_IMAGES labelled images, without reduced copies, drawn evenly over classes and repeatably."""
    by_class: dict[int, list[Labelled]] = defaultdict(list)
    for photo in sorted(images, key=lambda photo: drawn_order(f"{photo.label}/{photo.path.name}{photo.cut.text}")):
        if photo.class_number is not None and photo.cut.shorter_px is None:
            by_class[photo.class_number].append(photo)
    by_turns = chain.from_iterable(zip_longest(*by_class.values()))
    return list(islice((photo for photo in by_turns if photo is not None), MOST_IMAGES))


def check_preprocessing(
    models: Iterable[Model], images: Sequence[Labelled], examiner: Examiner, limits: image.Limits, workers: Workers
) -> None:
    """Compare each model's preprocessing with other kinds, and store a doubt in the recording if one is better.

    A model is compared once in each recording. If its preprocessing is proven, its manifest is marked so, if this user
    may write it.
    """
    sample = draw_images(images)
    for model in models:
        manifest = model.manifest
        key = f"preprocessing {manifest.identity}"
        execute = workers.store.connection.execute
        if execute("SELECT 1 FROM meta WHERE key = ?", (key,)).fetchone():
            continue
        spec = manifest.input
        variants = dict(islice(preprocessing_variants(spec, spec.width_px, spec.height_px).items(), MOST_VARIANTS))
        check = partial(
            right_by_variant, infer=partial(examiner.infer, manifest.name), variants=variants, limits=limits
        )
        with closing(workers.work("comparing", check, sample)) as outcomes:
            comparison = VariantComparison.of(outcomes, variants)
        if workers.observer.stop.is_set() or not comparison.is_enough:
            return
        better, doubt = comparison.better_variant, ""
        if better is not None:
            counts = f"{comparison.count(CURRENT)} of {comparison.images} images"
            counts += f"; prepared with {better}, on {comparison.count(better)}"
            repair = f"jetsel models set {manifest.name} --family {manifest.family} {better}"
            doubt = f"{manifest.name} is right on {counts}: {repair}"
        elif comparison.is_proven(CURRENT) and manifest.preprocessing is not None:
            with suppress(ManifestError):
                rewrite_manifest(model, preprocessing=manifest.preprocessing.checked(comparison.images))
        execute("INSERT INTO meta VALUES (?, ?)", (key, doubt))
