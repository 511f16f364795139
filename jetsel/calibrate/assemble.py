"""Puts a calibration together from what was learned and the operating points that were chosen."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jetsel import premodel
from jetsel.calibrate.held_out import EMBEDDING_KS, SHARES, SKIP_K, Learned, sure_of
from jetsel.calibrate.rungs import Fitted
from jetsel.premodel import Calibration, Rung, Skip, Soundness, Weighing
from jetsel.wire import Criterion


@dataclass(frozen=True)
class Identity:
    """What a calibration is bound to: the family, and the hashes of its labels, models and table of features."""

    family: str
    labels_sha256: str
    model_sha256: Mapping[str, str]
    feature_table: str
    decode_px: int


@dataclass(frozen=True)
class Places:
    """The chosen operating point of each way to choose, by its place among those that were tried."""

    cascade: int
    averaged: int
    skipping: int
    embedding: int | None
    boosted: int | None


def assemble(
    identity: Identity,
    learned: Mapping[Criterion, Learned],
    places: Mapping[Criterion, Places],
    soundness: Mapping[Criterion, Soundness],
    **facts: Any,
) -> Calibration:
    """Return the calibration of every criterion in `learned`, all learned from the same photographs.

    facts: fields of the calibration that comparison decides (default_policy, because, figures, ...).
    """
    first = next(iter(learned.values()))
    features = first.train.features[:, first.columns]
    scaling = premodel.fit_scaling(features)
    values: dict[str, Any] = {
        "family": identity.family,
        "labels_sha256": identity.labels_sha256,
        "model_sha256": {model: identity.model_sha256[model] for model in first.train.models},
        "feature_table": identity.feature_table,
        "decode_px": identity.decode_px,
        "features": first.plan.features,
        "k": min(first.plan.k, len(features)),
        "temperatures": dict(first.temperatures),
        "costs_ms": dict(first.train.costs_ms),
        "energies_mj": dict(first.train.energies_mj or {}),
        "objective": first.train.objective,
        "default_policy": dict.fromkeys(learned, "cascade"),
        "because": "not compared yet",
        "figures": {},
        "created": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "minimum": scaling.minimum,
        "maximum": scaling.maximum,
        "points": scaling.apply(features),
        "links": {criterion: one.links for criterion, one in learned.items()},
        "soundness": dict(soundness),
    }
    values |= _tables(learned, places)
    return Calibration(**(values | facts))


def _tables(learned: Mapping[Criterion, Learned], places: Mapping[Criterion, Places]) -> dict[str, Any]:
    """What differs between the criteria."""
    tables: dict[str, Any] = {
        name: {} for name in ("right", "cascades", "averaged", "skip", "sure", "embedding", "boosted", "trees")
    }
    for criterion, one in learned.items():
        chosen, n, prices = places[criterion], len(one.train.classes), one.prices
        cascade = one.cascades[chosen.cascade]
        tables["right"][criterion] = one.train.right(one.criterion)
        tables["cascades"][criterion] = _rungs(cascade, one)
        tables["averaged"][criterion] = _rungs(one.averaged[chosen.averaged], one)
        tables["skip"][criterion] = Skip(min(SKIP_K, n), SHARES[chosen.skipping])
        tables["sure"][criterion] = sure_of(one, cascade)
        if chosen.embedding is not None and one.train.embeddings is not None:
            which_k, which_price = divmod(chosen.embedding, len(prices))
            k = min(EMBEDDING_KS[which_k], n)
            tables["embedding"][criterion] = _weighing(one, prices[which_price], k)
            tables["embeddings"] = one.train.embeddings.astype(np.float32)
        if chosen.boosted is not None and one.trees is not None:
            tables["boosted"][criterion] = _weighing(one, prices[chosen.boosted])
            tables["trees"][criterion] = one.trees
    return tables


def _weighing(learned: Learned, price: float, k: int | None = None) -> Weighing:
    if learned.train.objective == "energy":
        return Weighing(price_per_mj=float(price), k=k)
    return Weighing(price_per_ms=float(price), k=k)


def _rungs(fitted: Fitted, learned: Learned) -> tuple[Rung, ...]:
    models = learned.train.models
    return tuple(
        Rung(models[rung], float(threshold)) for rung, threshold in zip(fitted.rungs, fitted.thresholds, strict=True)
    )
