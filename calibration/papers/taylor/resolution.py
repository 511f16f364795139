"""Whether features that see more pixels tell more, also of the few full-size images that have labels here.

All images that are fitted on are at most 299 pixels square, and the paper's were larger: so a reader that is fitted on
them meets features of full-size images that mean something else, and one that learns from the few full-size images has
little to learn from. Both are shown, with intervals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.imagenet.reproduce import readers
from calibration.optimizing.beside import recorded
from calibration.papers.area import area_under_curve
from calibration.papers.tables import table
from calibration.papers.taylor.readers import area
from calibration.papers.taylor.study import TIMED, Study
from calibration.starter.calibrate import LIMITS
from jetsel import image
from jetsel.calibrate.record.cuts import CutImage
from jetsel.features import PAPER_NAMES, WORKING_PX
from jetsel.premodel import fit_scaling

SIZES_PX = {"64 x 64": WORKING_PX, "300 x 300": 90_000, "all": 50_000_000}
FULL = ("full", "photos")
DRAWS = 2000
LEARNED_HERE = "logistic regression, all 29, learned on the other full-size images alone"
COLUMNS = "reader | features see | AUC | beside 64 x 64"


def resolution(study: Study, work: Path, photos: Path | None) -> Iterator[str]:
    """Give a table for each kind of test images, or for `photos`, full-size images of the starter family's classes."""
    name, cheapest, decode_px = study.family.name, study.recording.models[0], study.family.decode_px
    judged = {kind: study.test.take(np.flatnonzero(study.kinds == kind)) for kind in sorted(set(study.kinds))}
    if photos is not None:
        judged = {"photos": recorded(study.family, photos, work / f"{name}-photos.sqlite", TIMED)}
    known = {size: features_at(study.recording.paths, decode_px, px) for size, px in SIZES_PX.items()}
    for kind, images in judged.items():
        seen = {size: features_at(images.paths, decode_px, px) for size, px in SIZES_PX.items()}
        truth = images.right[:, 0]
        rows = _told(study, known, seen, truth)
        if kind in FULL:
            rows += _learned(seen, truth)
        n, px = len(truth), _median_px(images.paths)
        title = (
            f"{name}: where {cheapest} is right on {n} of {kind}, {px:,} pixels in the median; it is on {truth.sum()}"
        )
        yield table(title, COLUMNS, rows)
        if kind in FULL:
            yield table(f"{name}: features of {n} of {kind}, 64 x 64 and whole", "feature | correlation", _alike(seen))


def features_at(paths: Sequence[str], decode_px: int, size_px: int) -> NDArray[np.float32]:
    """Return all features of images, (n, 29), that see at most so many pixels."""

    def one(path: str) -> NDArray[np.float32]:
        data = image.read_file(Path(path), LIMITS)
        decoded = image.decode(data, LIMITS, decode_px)
        return CutImage(decoded, data, decoded).extract(LIMITS, size_px, PAPER_NAMES)

    with ThreadPoolExecutor() as pool:
        return np.stack(list(pool.map(one, paths)))


def _alike(seen: dict[str, NDArray[np.float32]]) -> list[str]:
    """Return for each feature how its values at the smallest and the largest size go together."""
    small, *_, whole = seen.values()
    rows = []
    for name, one, other in zip(PAPER_NAMES, small.T, whole.T, strict=True):
        varies = one.std() > 0 and other.std() > 0
        rows.append(f"{name} | " + (f"{np.corrcoef(one, other)[0, 1]:.2f}" if varies else "it never changes"))
    return rows


def _median_px(paths: Sequence[str]) -> int:
    """Return how many pixels the files have."""
    opened = [image.decode(image.read_file(Path(path), LIMITS), LIMITS, 1) for path in paths]
    return int(np.median([one.width_px * one.height_px for one in opened]))


def _told(
    study: Study,
    known: dict[str, NDArray[np.float32]],
    seen: dict[str, NDArray[np.float32]],
    truth: NDArray[np.bool_],
) -> list[str]:
    """Return rows for readers that are fitted on the images of FIT."""
    rows = []
    for name, (read, make) in readers().items():
        columns = [PAPER_NAMES.index(feature) for feature in read]
        said = {}
        for size in SIZES_PX:
            scaling = fit_scaling(known[size][:, columns])
            reader: Any = make()
            reader.fit(scaling.apply(known[size][:, columns]), study.right[:, 0])
            said[size] = reader.predict_proba(scaling.apply(seen[size][:, columns]))[:, 1]
        rows += _rows(name, truth, said)
    return rows


def _learned(seen: dict[str, NDArray[np.float32]], truth: NDArray[np.bool_]) -> list[str]:
    """Return rows for a reader that learns from the full-size images, each tenth held out in turn."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    folds = StratifiedKFold(10, shuffle=True, random_state=2018)
    reader = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=5000))
    said = {
        size: cross_val_predict(reader, features, truth, cv=folds, method="predict_proba")[:, 1]
        for size, features in seen.items()
    }
    return _rows(LEARNED_HERE, truth, said)


def _rows(name: str, truth: NDArray[np.bool_], said: dict[str, NDArray[np.float64]]) -> list[str]:
    """Return a row for each size: AUC, and how much it is above that of the smallest, on the same draws of images."""
    first, *others = said
    rows = [f"{name} | {first} | {area(truth, said[first])} | "]
    for size in others:
        draw, more = np.random.default_rng(2018), []
        for _ in range(DRAWS):
            drawn = draw.integers(0, len(truth), len(truth))
            areas = [area_under_curve(truth[drawn], said[one][drawn]) for one in (size, first)]
            if areas[0] is not None and areas[1] is not None:
                more.append(areas[0] - areas[1])
        low, high = np.quantile(more, [0.025, 0.975])
        rows.append(f"{name} | {size} | {area(truth, said[size])} | {np.mean(more):+.3f} ({low:+.3f} to {high:+.3f})")
    return rows
