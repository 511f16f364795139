"""What every model of a family said of every photograph, and what each step cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jetsel.artefact.condensed import RecordedAnswers, condense
from jetsel.base.errors import CalibrationError
from jetsel.features import NAMES
from jetsel.policies.kind import Table
from jetsel.policies.policy import Prediction
from jetsel.power.integration import NO_METER
from jetsel.premodel import is_right
from jetsel.runtime.model_queue import predict

Objective = Literal["time", "energy"]
"""What is to be saved: the cheapest model is the one that takes least of it."""

SMALLER = (0.5, 0.75)  # of the largest input's side: where a kind of size ends


def kinds_of_size(features: NDArray[np.float32], decode_px: int) -> NDArray[np.int64]:
    """Return which images have a shorter side below half of the largest input (0), of three quarters (1), others (2).

    features: (n, features), all of the table. decode_px: the side of the largest input. On images that are enlarged a
    large model sees little that a small one does not, so that the order of the models may turn round: accuracy is kept
    among each kind, not in the mean of all.
    """
    width, height = (features[:, NAMES.index(name)] for name in ("width", "height"))
    return np.searchsorted(np.log2(decode_px * np.array(SMALLER)), np.minimum(width, height), side="right")


CALIBRATE_POWER = "measure the idle power with `jetsel power calibrate`, and record again"


@dataclass(frozen=True, eq=False)
class Recording:
    """n photographs, m models cheapest first, c classes, f features.

    logits: (m, n, c) float16 or float32. classes: (n,) the true class numbers. features: (n, f) float32, in the order
    of feature_names. costs_ms: model -> mean latency of one photograph, its input made of the decoded photograph
    included. embeddings: (n, width) float16 of the cheapest model, None if it has none. groups: (n,) photographs
    that are nearly the same share a number, and are never held out apart; None: each is its own. paths: where each
    photograph was read. energies_mj: model -> mean energy of the same run above idle power, None if it was not
    measured. chooser_w: watts above idle while features are extracted, None if unknown. objective: which cost counts.
    is_scaled: whether the logits are divided by calibrated temperatures already. sizes: (n,), how large the photographs
    are beside the models' inputs, see `kinds_of_size`; None if that is not asked.
    """

    models: tuple[str, ...]
    logits: NDArray[np.float16] | NDArray[np.float32]
    classes: NDArray[np.int64]
    features: NDArray[np.float32]
    costs_ms: Mapping[str, float]
    embeddings: NDArray[np.float16] | None = None
    groups: NDArray[np.int64] | None = None
    paths: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = NAMES
    energies_mj: Mapping[str, float] | None = None
    chooser_w: float | None = None
    objective: Objective = "time"
    is_scaled: bool = False
    sizes: NDArray[np.int64] | None = None

    @classmethod
    def of_answers(cls, answers: RecordedAnswers, decode_px: int) -> Recording:
        """Return what shipped with a calibration as the recording that it was made of. decode_px: the family's."""
        return cls(
            models=answers.models,
            logits=answers.logits,
            classes=answers.classes,
            features=answers.features,
            costs_ms=answers.costs_ms,
            groups=answers.groups,
            is_scaled=True,
            sizes=kinds_of_size(answers.features, decode_px),
        )

    def condensed(
        self, temperatures: Mapping[str, float], identities: Mapping[str, str] = MappingProxyType({})
    ) -> bytes:
        """Return what ships of it with a calibration, the content of ANSWERS: see `condense`."""
        logits = dict(zip(self.models, self.logits, strict=True))
        return condense(logits, self.classes, self.features, self.groups, temperatures, identities)

    @property
    def knows_energy(self) -> bool:
        """Whether the energy of models and chooser was measured."""
        return self.energies_mj is not None and self.chooser_w is not None

    def costs(self, objective: Objective | None = None) -> NDArray[np.float64]:
        """What each model costs, (m,): ms or mJ, by the recording's own objective if none is named.

        Raises CalibrationError for energy that was not measured.
        """
        costs = self.costs_ms if (objective or self.objective) == "time" else self.energies_mj
        if costs is None:
            raise CalibrationError(f"no energy was measured: {CALIBRATE_POWER}")
        return np.array([costs[model] for model in self.models])

    def chooser_mj(self, chooser_ms: float) -> float:
        """The energy of choosing for so long, features included. Raises CalibrationError if it was not measured.

        A choice is taken to draw what extracting features does, which is metered: both keep one core busy.
        """
        if self.chooser_w is None:
            raise CalibrationError(f"no energy was measured: {CALIBRATE_POWER}")
        return chooser_ms * self.chooser_w

    def features_of(self, photograph: int, names: tuple[str, ...]) -> NDArray[np.float32]:
        """The named features of one photograph, (len(names),) float32, in the order of the names."""
        return self.features[photograph, [self.feature_names.index(name) for name in names]]

    def feature(self, name: str) -> NDArray[np.float32]:
        """One feature of every photograph, (n,)."""
        return self.features[:, self.feature_names.index(name)]

    @cached_property
    def right(self) -> NDArray[np.bool_]:
        """Which model was right on which photograph, (n, m): its first answer is the class."""
        return self.among(1)

    def among(self, first: int) -> NDArray[np.bool_]:
        """Whether the class is among this number of each model's first answers, (n, m).

        Of equal logits the lower class number stands first, as in answers.
        """
        return np.stack([is_right(logits, self.classes, first) for logits in self.logits], axis=1)

    def confidences(self, temperatures: Mapping[str, float]) -> NDArray[np.float32]:
        """Each model's confidence in each photograph, (n, m) float32; the driver's own formula, all at once."""
        columns = []
        for model, logits in zip(self.models, self.logits, strict=True):
            scaled = logits.astype(np.float32) / np.float32(temperatures[model])
            odds = np.exp(scaled - scaled.max(axis=1, keepdims=True))
            columns.append(odds.max(axis=1) / odds.sum(axis=1))
        return np.stack(columns, axis=1)

    def prediction(self, model: str, photograph: int, temperature: float) -> Prediction:
        """What the model said of one photograph, as the driver would hand it to a policy."""
        logits = self.logits[self.models.index(model), photograph].astype(np.float32)
        cheapest = model == self.models[0] and self.embeddings is not None
        embedding = self.embeddings[photograph].astype(np.float32) if cheapest and self.embeddings is not None else None
        return predict(model, logits, temperature, embedding)

    def table(self, temperatures: Mapping[str, float]) -> Table:
        """The same as what a policy is fitted on, or tried on."""
        return Table(
            models=self.models,
            logits=tuple(self.logits),
            temperatures=[temperatures[model] for model in self.models],
            classes=self.classes,
            right=self.right,
            costs=self.costs(),
            features=self.features,
            feature_names=self.feature_names,
            embeddings=self.embeddings,
            groups=self.groups,
        )

    def of_models(self, names: Iterable[str]) -> Recording:
        """The same of some models, cheapest first; their embeddings are left out."""
        chosen = sorted(names, key=lambda name: (self.costs_ms[name], name))
        columns = [self.models.index(name) for name in chosen]
        costs_ms = {name: self.costs_ms[name] for name in chosen}
        logits = self.logits[columns]
        return replace(self, models=tuple(chosen), logits=logits, costs_ms=costs_ms, embeddings=None)

    def take(self, rows: NDArray[np.int64]) -> Recording:
        """The same of some photographs, in the order of `rows`."""
        return replace(
            self,
            logits=self.logits[:, rows],
            classes=self.classes[rows],
            features=self.features[rows],
            embeddings=None if self.embeddings is None else self.embeddings[rows],
            groups=None if self.groups is None else self.groups[rows],
            sizes=None if self.sizes is None else self.sizes[rows],
            paths=tuple(self.paths[row] for row in rows) if self.paths else (),
        )


@dataclass(frozen=True)
class Energies:
    """What one run takes above idle power.

    Means over the photographs on which every model and the features were metered. mean_mj: model -> mean.
    half_width_mj: model -> half of its 95 % interval. chooser_w: mean watts above idle while features were extracted.
    """

    mean_mj: Mapping[str, float]
    half_width_mj: Mapping[str, float]
    chooser_w: float


@dataclass(frozen=True)
class Times:
    """What models and chooser cost, on which machine.

    Medians over the photographs on which every model was timed. costs_ms: model -> latency, its input included.
    features_ms: of the whole table of features. conditions: of the last run that timed, in words. noisy: why the times
    cannot be trusted. energies: None with its reason.
    """

    costs_ms: Mapping[str, float]
    features_ms: float
    conditions: Mapping[str, str]
    noisy: str | None
    energies: Energies | None = None
    energy_reason: str | None = NO_METER


@dataclass(frozen=True, eq=False)
class LoadedRecording:
    """A recording of the complete photographs, in the order of their contents' paths, and what stands around it.

    features_px: the pixels of a photograph that its features saw at most. skipped: kind of reason -> files left out.
    left_out: each of them, its path and the whole reason. labels_from: the model whose answers are the classes, None
    if they are the owner's labels. learned: share of the images that heads were trained on.
    recording.costs_ms are the times'. dropped: models that were recorded no further, and why. doubts: models whose
    preprocessing is surely wrong, and the repair.
    """

    recording: Recording
    times: Times
    skipped: Mapping[str, int]
    left_out: Sequence[tuple[str, str]]
    identities: Mapping[str, str]
    features_px: int
    family: str
    labels_from: str | None
    learned: float = 0.0
    dropped: Mapping[str, str] = field(default_factory=dict)
    doubts: Mapping[str, str] = field(default_factory=dict)

    @property
    def learned_share(self) -> str:
        """How many of the images heads were trained on, in words."""
        return f"{100 * self.learned:.0f} %" if self.learned >= 0.01 else "fewer than 1 %"
