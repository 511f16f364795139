"""A published family, and every cascade of up to two of its models on its recorded answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from jetsel.addons.fleet.documents import Bundle, Entry
from jetsel.addons.fleet.reading import fetch, read_bundle
from jetsel.addons.fleet.sources import RepositorySource
from jetsel.artefact.coding import read
from jetsel.artefact.condensed import RecordedAnswers, read_condensed
from jetsel.base.errors import JetselError, RepositoryError
from jetsel.zoo.labels import Labels
from jetsel.zoo.manifest import read_manifest

RUNGS = 2  # most models of a cascade


@dataclass(frozen=True, eq=False)
class CascadeTable:
    """c cascades of a family's models, on n images.

    models: of each cascade, cheapest first. rungs: (c, RUNGS) their indices, -1 behind the last. stops: (c, n) place of
    the model that answered in its cascade, from 0. right: (c, n) whether the answer is right.
    """

    models: Sequence[tuple[str, ...]]
    rungs: NDArray[np.int64]
    stops: NDArray[np.int8]
    right: NDArray[np.bool_]

    @cached_property
    def rows_by_models(self) -> list[NDArray[np.int64]]:
        """The rows of cascades that have the same models, for each set of models."""
        rows: dict[tuple[str, ...], list[int]] = {}
        for row, models in enumerate(self.models):
            rows.setdefault(models, []).append(row)
        return [np.array(each) for each in rows.values()]

    @cached_property
    def uniform_shares(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The result of `shares` if all images have the same weight."""
        return self.shares(np.full(self.stops.shape[1], 1 / self.stops.shape[1]))

    def shares(self, weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the share of images that stop at each rung, and that stop there with a right answer: both (c, RUNGS).

        weights: (n,) of the images, with the sum 1.
        """
        stopped_at = [self.stops == place for place in range(RUNGS)]
        return (
            np.stack([stopped @ weights for stopped in stopped_at], axis=1),
            np.stack([(stopped & self.right) @ weights for stopped in stopped_at], axis=1),
        )


@dataclass(frozen=True, eq=False)
class PublishedFamily:
    """One family. answers: of the models that can be planned, with calibrated times. energies_mj: calibrated.

    classes: class numbers by label. files: sizes by SHA-256 for each model. always: sizes of the files for every
    device.
    """

    entry: Entry
    answers: RecordedAnswers
    energies_mj: Mapping[str, float]
    classes: Mapping[str, int]
    files: Mapping[str, Mapping[str, int]]
    always: Mapping[str, int]
    _fitted: dict[tuple[int, ...], CascadeTable] = field(default_factory=dict)

    def cascades(self, costs_ms: Sequence[float]) -> CascadeTable:
        """Return the cascades for these times, one per model of the answers; only the order of the times matters."""
        key = tuple(sorted(range(len(costs_ms)), key=lambda column: costs_ms[column]))
        if key not in self._fitted:
            cascades = self.answers.cascades(costs_ms)
            self._fitted[key] = CascadeTable(
                [tuple(self.answers.models[column] for column in columns) for columns, _, _ in cascades],
                np.array([[*columns, *[-1] * (RUNGS - len(columns))] for columns, _, _ in cascades]),
                np.array([(ran.sum(axis=1) - 1).astype(np.int8) for _, _, ran in cascades]),
                np.array([right for _, right, _ in cascades]),
            )
        return self._fitted[key]


def read_published(source: RepositorySource, entry: Entry, trusted: Collection[str], scratch: Path) -> PublishedFamily:
    """Read what planning needs of a bundle. scratch: a folder for its files. Raises RepositoryError."""
    bundle, _ = read_bundle(source, entry, trusted)
    manifest_name = next(name for name in bundle.models[0].files if name.endswith(".json"))
    calibrated = {file.name for file in bundle.files if file.name.startswith("calibration/")}
    try:
        folder = _fetch(source, bundle, {manifest_name, *calibrated}, scratch / "calibrated")
        calibration = read(folder / "calibration")
        manifest = read_manifest(folder / manifest_name)
        labels = Labels.read(_fetch(source, bundle, {manifest.labels}, scratch / "labels") / manifest.labels)
        names = {model.name for model in bundle.models}
        costs_ms = {name: cost for name, cost in calibration.costs_ms.items() if name in names}
        answers = read_condensed(folder / "calibration", costs_ms)
    except JetselError as fault:
        raise RepositoryError(
            f"family {entry.family} cannot be planned ({fault}): calibrate it, and publish it again"
        ) from fault
    bytes_of = {file.name: (file.sha256, file.bytes) for file in bundle.files}
    return PublishedFamily(
        entry=entry,
        answers=answers,
        energies_mj=calibration.energy.mean_mj,
        classes={label: number for names in (labels.names, labels.wnids) for number, label in enumerate(names)},
        files={model.name: dict(bytes_of[name] for name in model.files) for model in bundle.models},
        always={file.sha256: file.bytes for file in bundle.files_for(())},
    )


def _fetch(source: RepositorySource, bundle: Bundle, names: set[str], into: Path) -> Path:
    """Fetch some of a bundle's files; return their folder. Raises RepositoryError."""
    into.mkdir(parents=True, exist_ok=True)
    return fetch(source, structs.replace(bundle, files=tuple(f for f in bundle.files if f.name in names)), into)
