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

CATEGORY_LIMITS = (0.5, 0.75)  # between the size categories, as shares of the largest input's side


def size_categories(features: NDArray[np.float32], decode_px: int) -> NDArray[np.int64]:
    """Return each image's size category, (n,): its shorter side is below 1/2 (0) or 3/4 (1) of decode_px, or above (2).

    features: (n, features), all of the table; width and height are log2 of pixels. decode_px: the side of the family's
    largest input. A large model gains little from an enlarged image, so the order of the models by accuracy may differ
    between the categories: `Goal.cheapest_as_accurate` tests the accuracy within each.
    """
    width, height = (features[:, NAMES.index(name)] for name in ("width", "height"))
    return np.searchsorted(np.log2(decode_px * np.array(CATEGORY_LIMITS)), np.minimum(width, height), side="right")


@dataclass(frozen=True)
class Energies:
    """Energies above idle power, averaged over the images on which every model and the features were metered."""

    mean_mj: Mapping[str, float]  # model -> energy of one inference
    half_width_mj: Mapping[str, float]  # model -> half of that mean's 95 % interval
    chooser_w: float  # mean watts while features were extracted


@dataclass(frozen=True, eq=False)
class Recording:
    """Outputs and costs of m models, cheapest first, on n images of c classes with f features."""

    models: tuple[str, ...]
    logits: NDArray[np.float16] | NDArray[np.float32]  # (m, n, c)
    classes: NDArray[np.int64]  # (n,) true class numbers
    features: NDArray[np.float32]  # (n, f), in the order of feature_names
    costs_ms: Mapping[str, float]  # model -> latency of one decoded image, preprocessing included
    embeddings: NDArray[np.float16] | None = None  # (n, width) of the cheapest model, None if it has none
    groups: NDArray[np.int64] | None = None  # (n,), near-duplicates share a number; None: independent
    paths: tuple[str, ...] = ()  # of the images, empty if unknown
    feature_names: tuple[str, ...] = NAMES
    energies: Energies | None = None  # None if unknown
    objective: Objective = "time"  # the cost that counts
    is_scaled: bool = False  # whether logits are divided by temperatures already
    sizes: NDArray[np.int64] | None = None  # (n,), see `size_categories`; None: not distinguished

    @classmethod
    def of_answers(cls, answers: RecordedAnswers, decode_px: int) -> Recording:
        """Return a recording of the answers that ship with a calibration. decode_px: see `size_categories`."""
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
        """Return the bytes of the file ANSWERS, which ships with a calibration so that others can fit it again.

        temperatures, identities: by model, see `condense`.
        """
        logits = dict(zip(self.models, self.logits, strict=True))
        return condense(logits, self.classes, self.features, self.groups, temperatures, identities)

    def costs(self, objective: Objective | None = None) -> NDArray[np.float64]:
        """Return each model's cost, (m,): ms for "time", mJ for "energy". objective: None for the recording's own."""
        costs = self.costs_ms
        if (objective or self.objective) == "energy":
            assert self.energies is not None
            costs = self.energies.mean_mj
        return np.array([costs[model] for model in self.models])

    def chooser_mj(self, chooser_ms: float) -> float:
        """Return the energy in mJ of a policy's choice that takes `chooser_ms`. Call it only if energy was measured.

        A choice is assumed to draw the metered power of extracting features: both keep one core busy.
        """
        assert self.energies is not None
        return chooser_ms * self.energies.chooser_w

    @property
    def best_single(self) -> str:
        """Name of the most accurate model; the cheapest wins a tie."""
        return self.models[int(np.lexsort((self.costs(), -self.right.mean(axis=0)))[0])]

    def features_of(self, row: int, names: tuple[str, ...]) -> NDArray[np.float32]:
        """Return the named features of the image in a row, (len(names),) float32, in the order of the names."""
        return self.features[row, [self.feature_names.index(name) for name in names]]

    def path(self, row: int) -> str:
        """Return the path of the image in a row, or "image" and the row if paths are unknown."""
        return self.paths[row] if self.paths else f"image {row}"

    def feature(self, name: str) -> NDArray[np.float32]:
        """Return one feature of every image, (n,)."""
        return self.features[:, self.feature_names.index(name)]

    @cached_property
    def right(self) -> NDArray[np.bool_]:
        """Whether each model's first answer is the true class, (n, m)."""
        return self.is_among_best(1)

    def is_among_best(self, n_best: int) -> NDArray[np.bool_]:
        """Return whether the true class is among each model's `n_best` most probable answers, (n, m).

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
        """Return the model's prediction for the image in a row, as the daemon passes it to a policy."""
        logits = self.logits[self.models.index(model), row].astype(np.float32)
        has_embedding = model == self.models[0] and self.embeddings is not None
        embedding = self.embeddings[row].astype(np.float32) if has_embedding and self.embeddings is not None else None
        return predict(model, logits, temperature, embedding)

    def table(self, temperatures: Mapping[str, float]) -> Table:
        """Return the arrays that policies are fitted to. temperatures: by model."""
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
        """Return the recording of the images in these rows, in this order."""
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
    """How a recording was timed and metered."""

    features_ms: float  # of extracting all features, the median over images
    conditions: Mapping[str, str]  # board, clocks and load of the last timed run, in words
    noisy: str | None  # why the times are unreliable, or None
    energy_reason: str | None = NO_METER  # why energies are unknown, or None


@dataclass(frozen=True, eq=False)
class LoadedRecording:
    """The recording of all complete images, in the order of their paths, and the facts about it."""

    recording: Recording
    times: Times
    identity: BoundIdentities  # hashes of what the recording is valid for
    class_names: Sequence[str] = ()  # of all classes, for reports
    left_out: Sequence[tuple[str, str]] = ()  # path and reason of each skipped file
    labels_from: str | None = None  # model whose answers are the classes, None for the owner's labels
    learned: float = 0.0  # share of the images that the models' heads were trained on
    dropped: Mapping[str, str] = field(default_factory=dict)  # model -> why it was recorded no further
    doubts: Mapping[str, str] = field(default_factory=dict)  # model -> why its preprocessing seems wrong; the repair

    @property
    def learned_share(self) -> str:
        """The share of the images that heads were trained on, in words."""
        return f"{100 * self.learned:.0f} %" if self.learned >= 0.01 else "fewer than 1 %"
