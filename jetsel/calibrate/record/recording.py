"""A recording in memory: the outputs of every model on every image, and the cost of each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jetsel.artefact.calibration import BoundIdentities
from jetsel.artefact.condensed import RecordedAnswers, condense
from jetsel.features import NAMES
from jetsel.policies.kind import Table
from jetsel.policies.policy import Prediction
from jetsel.power.integration import NO_METER
from jetsel.premodel import is_right
from jetsel.premodel.cascades import log_softmax
from jetsel.runtime.model_queue import predict

Objective = Literal["time", "energy"]
"""The cost to minimize, by which models are ordered."""

CATEGORY_LIMITS = (0.5, 0.75)  # limits between the kinds of size, as shares of the largest input's side


def size_categories(features: NDArray[np.float32], decode_px: int) -> NDArray[np.int64]:
    """Return each image's kind: shorter side below half of the largest input (0), below three quarters (1), others (2).

    features: (n, features), all of the table; width and height are log2 of pixels. decode_px: the side of the largest
    input. A large model gains little from an enlarged image, so the order of the models by accuracy may differ between
    the kinds: `Goal.cheapest_as_accurate` tests the accuracy within each kind.
    """
    width, height = (features[:, NAMES.index(name)] for name in ("width", "height"))
    return np.searchsorted(np.log2(decode_px * np.array(CATEGORY_LIMITS)), np.minimum(width, height), side="right")


@dataclass(frozen=True)
class Energies:
    """Energies of one run above idle power: means over the images on which every model and the features were metered.

    mean_mj: model -> mean. half_width_mj: model -> half of the mean's 95 % interval. chooser_w: mean watts above idle
    while features were extracted.
    """

    mean_mj: Mapping[str, float]
    half_width_mj: Mapping[str, float]
    chooser_w: float


@dataclass(frozen=True, eq=False)
class Recording:
    """Outputs and costs of m models, cheapest first, on n images of c classes with f features.

    logits: (m, n, c) float16 or float32. classes: (n,) true class numbers. features: (n, f) float32, in the order of
    feature_names. costs_ms: model -> latency of one decoded image, preprocessing included. embeddings: (n, width)
    float16 of the cheapest model, None if it has none. groups: (n,), near-duplicates share a number and are held out
    together; None: all images are independent. paths: of the images. energies: None if unknown. objective: the cost
    that counts. is_scaled: whether logits are divided by temperatures already. sizes: (n,), see `kinds_of_size`; None:
    kinds are not distinguished.
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
    energies: Energies | None = None
    objective: Objective = "time"
    is_scaled: bool = False
    sizes: NDArray[np.int64] | None = None

    @classmethod
    def of_answers(cls, answers: RecordedAnswers, decode_px: int) -> Recording:
        """Return the answers that ship with a calibration as a recording. decode_px: the family's."""
        return cls(
            models=answers.models,
            logits=answers.logits,
            classes=answers.classes,
            features=answers.features,
            costs_ms=answers.costs_ms,
            groups=answers.groups,
            is_scaled=True,
            sizes=size_categories(answers.features, decode_px),
        )

    def condense_answers(
        self, temperatures: Mapping[str, float], identities: Mapping[str, str] = MappingProxyType({})
    ) -> bytes:
        """Return the content of ANSWERS, the file that ships with a calibration: see `condense`."""
        logits = dict(zip(self.models, self.logits, strict=True))
        return condense(logits, self.classes, self.features, self.groups, temperatures, identities)

    def costs(self, objective: Objective | None = None) -> NDArray[np.float64]:
        """Return each model's cost, (m,), in ms, or in mJ if energy was measured. objective: None for its own."""
        costs = self.costs_ms
        if (objective or self.objective) == "energy":
            assert self.energies is not None
            costs = self.energies.mean_mj
        return np.array([costs[model] for model in self.models])

    def chooser_mj(self, chooser_ms: float) -> float:
        """Return the energy of a choice of this duration, if energy was measured.

        A choice is assumed to draw the metered power of extracting features: both keep one core busy.
        """
        assert self.energies is not None
        return chooser_ms * self.energies.chooser_w

    @property
    def best_single(self) -> str:
        """The most accurate model; the cheapest wins a tie."""
        return self.models[int(np.lexsort((self.costs(), -self.right.mean(axis=0)))[0])]

    def features_of(self, row: int, names: tuple[str, ...]) -> NDArray[np.float32]:
        """Return the named features of one image, (len(names),) float32, in the order of the names."""
        return self.features[row, [self.feature_names.index(name) for name in names]]

    def path(self, row: int) -> str:
        """Return the path of an image, or its number if paths are unknown."""
        return self.paths[row] if self.paths else f"image {row}"

    def feature(self, name: str) -> NDArray[np.float32]:
        """Return one feature of every image, (n,)."""
        return self.features[:, self.feature_names.index(name)]

    @cached_property
    def right(self) -> NDArray[np.bool_]:
        """Which model's first answer is the true class on which image, (n, m)."""
        return self.is_among_best(1)

    def is_among_best(self, n_best: int) -> NDArray[np.bool_]:
        """Return whether the true class is among each model's `first` best answers, (n, m).

        The lower class number wins ties of logits, as in the daemon's answers.
        """
        return np.stack([is_right(logits, self.classes, n_best) for logits in self.logits], axis=1)

    def confidences(self, temperatures: Mapping[str, float]) -> NDArray[np.float32]:
        """Return each model's confidence on each image, (n, m) float32, by the same formula as the daemon's."""
        pairs = zip(self.models, self.logits, strict=True)
        columns = [log_softmax(logits, temperatures[model]).max(axis=1) for model, logits in pairs]
        confidences: NDArray[np.float32] = np.exp(np.stack(columns, axis=1))
        return confidences

    def prediction(self, model: str, row: int, temperature: float) -> Prediction:
        """Return the model's prediction for one image, as the daemon passes it to a policy."""
        logits = self.logits[self.models.index(model), row].astype(np.float32)
        has_embedding = model == self.models[0] and self.embeddings is not None
        embedding = self.embeddings[row].astype(np.float32) if has_embedding and self.embeddings is not None else None
        return predict(model, logits, temperature, embedding)

    def table(self, temperatures: Mapping[str, float]) -> Table:
        """Return the recording as a table that policies are fitted and tried on."""
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

    def take(self, rows: NDArray[np.int64]) -> Recording:
        """Return the recording of some images, in the order of `rows`."""
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
class Times:
    """What is known of times and energies beside those of the models.

    features_ms: of all features, the median over images. conditions: of the last run that timed, in words. noisy: why
    the times are unreliable, if they are. energy_reason: why the energies are unknown, if they are.
    """

    features_ms: float
    conditions: Mapping[str, str]
    noisy: str | None
    energy_reason: str | None = NO_METER


@dataclass(frozen=True, eq=False)
class LoadedRecording:
    """The recording of all complete images, in the order of their paths, and the facts about it.

    left_out: path and whole reason of each skipped file. class_names: names of all classes, for reports. labels_from:
    the model whose answers are the classes, None for the owner's labels. learned: share of the images that heads were
    trained on. dropped: model -> why its recording was stopped. doubts: model -> why its preprocessing is wrong, with
    the repair.
    """

    recording: Recording
    times: Times
    identity: BoundIdentities
    class_names: Sequence[str] = ()
    left_out: Sequence[tuple[str, str]] = ()
    labels_from: str | None = None
    learned: float = 0.0
    dropped: Mapping[str, str] = field(default_factory=dict)
    doubts: Mapping[str, str] = field(default_factory=dict)

    @property
    def learned_share(self) -> str:
        """The share of the images that heads were trained on, in words."""
        return f"{100 * self.learned:.0f} %" if self.learned >= 0.01 else "fewer than 1 %"
