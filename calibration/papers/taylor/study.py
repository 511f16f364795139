"""One family's images, to fit on and to judge on, their folds, and the plan of the chain that is fitted to them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibration.optimizing.beside import recorded
from calibration.papers.taylor.algorithm1 import select_models
from calibration.papers.taylor.clock import Clock
from calibration.papers.taylor.paper_chain import ChainPlan
from calibration.papers.taylor.selection import Planned, make_plan
from calibration.papers.taylor.trials import Folds
from calibration.starter.calibrate import TX2_CORE_FACTOR, TX2_MS, of_models, of_the_day
from jetsel.calibrate.calibrating import FOLDS, SEED
from jetsel.calibrate.record.conditions import TimingPlan
from jetsel.calibrate.record.load import load
from jetsel.calibrate.record.recording import LoadedRecording, Recording
from jetsel.features.near_duplicates import assign_folds
from jetsel.zoo import Family, scan

THETA_POINTS = 0.5  # section 3.2
TIMED = TimingPlan(images=1)  # times are the clock's


class AtTop5(Recording):
    """A recording in which a model is right if the class is among its first five answers."""

    @classmethod
    def of(cls, recording: Recording) -> AtTop5:
        """Return a recording as one of these."""
        return cls(**{one.name: getattr(recording, one.name) for one in fields(recording)})

    @cached_property
    def right(self) -> NDArray[np.bool_]:
        """Which model was right on which photograph, (n, m)."""
        return self.is_among_best(5)


class Study:
    """What the tables of one family are made of, under top-1. Every time is the clock's."""

    def __init__(
        self, family: Family, fit: LoadedRecording, test: Recording, kinds: Sequence[str], clock: Clock
    ) -> None:
        """kinds: each test image's folder of kind, or the family's name."""
        costs_ms = clock.models_ms()
        self.family, self.clock, self.kinds = family, clock, np.array(kinds)
        self.recording, self.test = (
            of_models(replace(one, costs_ms=costs_ms), costs_ms) for one in (fit.recording, test)
        )
        self.loaded = replace(fit, recording=self.recording)
        groups = self.recording.groups
        self.fold_of = assign_folds(np.arange(len(self.recording.classes)) if groups is None else groups, FOLDS, SEED)
        self.right, self.costs_ms = self.recording.right, self.recording.costs("time")

    def on_a_tx2(self) -> Study:
        """The same with the times of five models on a TX2, by rank, and slower features: derived."""
        derived = copy(self)
        costs_ms = {name: TX2_MS[name] for name in self.recording.models}
        derived.recording, derived.test = (replace(one, costs_ms=costs_ms) for one in (self.recording, self.test))
        derived.costs_ms, derived.clock = derived.recording.costs("time"), self.clock.slower(TX2_CORE_FACTOR)
        derived.planned = replace(self.planned, plan=replace(self.plan, features_ms=derived.clock(self.plan.features)))
        derived.folds = [
            (held, *(replace(one, costs_ms=costs_ms) for one in recordings)) for held, *recordings in self.folds
        ]
        return derived

    @cached_property
    def folds(self) -> Folds:
        """Of each fold its rows, the images of the other folds, and its own."""
        rows = [(np.flatnonzero(self.fold_of == one), np.flatnonzero(self.fold_of != one)) for one in range(FOLDS)]
        return [(held, self.recording.take(rest), self.recording.take(held)) for held, rest in rows]

    @cached_property
    def planned(self) -> Planned:
        """What is selected for the chain of votes."""
        return make_plan(self.recording, self.fold_of, THETA_POINTS, self.clock)

    @property
    def plan(self) -> ChainPlan:
        """The features, k and theta of that."""
        return self.planned.plan

    @cached_property
    def features(self) -> NDArray[np.float32]:
        """The plan's features, (n, f)."""
        return self.columns(self.plan.features)

    def columns(self, names: Sequence[str], recording: Recording | None = None) -> NDArray[np.float32]:
        """The named features, (n, names), of the images that are fitted on or of another recording."""
        seen = recording or self.recording
        return seen.features[:, [seen.feature_names.index(name) for name in names]]

    def at_top5(self) -> Study:
        """The same, where a model is right if the class is among its first five answers."""
        other = copy(self)
        other.recording, other.test = AtTop5.of(self.recording), AtTop5.of(self.test)
        other.folds = [(held, AtTop5.of(rest), AtTop5.of(own)) for held, rest, own in self.folds]
        other.right = other.recording.right
        return other

    def links(self, theta_points: float) -> list[int]:
        """The chain's columns in the order of Algorithm 1."""
        links, _ = select_models(self.right, self.costs_ms, self.recording.models, theta_points)
        return [self.recording.models.index(model) for model in links]


def read(name: str, models: Path, fit: Path, test: Path, work: Path) -> Study:
    """Record what is not recorded yet, and read it back. fit, test: folders of classes, or CSV files of images."""
    family = of_the_day(scan([models]).families[name])
    files = [work / f"{name}-{what}.sqlite" for what in ("fit", "test")]
    for images, file in zip((fit, test), files, strict=True):
        recorded(family, images, file, TIMED)
    known, other = load(files[0], family), load(files[1], family).recording
    kinds = [Path(path).parts[-3] if test.suffix == ".csv" else name for path in other.paths]
    return Study(family, known, other, kinds, Clock(family, known.recording, work / f"{name}-times.json"))
