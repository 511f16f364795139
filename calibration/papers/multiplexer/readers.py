"""How well each reader predicts where the cheapest model is right: before it ran, and from what it answered."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibration.imagenet.reproduce import readers
from calibration.papers.area import area_under_curve
from calibration.papers.multiplexer.edge import Taught
from jetsel.calibrate.record.recording import Recording
from jetsel.features import PAPER_NAMES
from jetsel.policies.multiplexer import NAME, STATISTICS, table_inputs
from jetsel.premodel import fit_scaling

DRAWS, SEED = 2000, 2020
SHOWN = f"{NAME}, as `jetsel calibrate` fits it"


def areas(learned: Taught, test: Recording) -> list[str]:
    """Return a row for each reader: AUC, and how much more the multiplexer has."""
    due, found = test.right[:, 0], _said(learned, test)
    draw = np.random.default_rng(SEED)
    rows = [draw.integers(0, len(due), len(due)) for _ in range(DRAWS)]
    drawn = {name: np.array([_area(due[one], said[one]) for one in rows]) for name, said in found.items()}
    ours = _area(due, found[SHOWN])
    return [
        f"{name} | {_area(due, said):.3f} ({_interval(drawn[name])}) | "
        + ("" if name == SHOWN else f"{ours - _area(due, said):+.3f} ({_interval(drawn[SHOWN] - drawn[name], '+')})")
        for name, said in found.items()
    ]


def gains(learned: Taught, test: Recording) -> list[str]:
    """Return a row for each larger model: how often it alone is right, the cheapest not, and how well that is known."""
    right, confidence = test.right, test.confidences(learned.temperatures)[:, 0]
    chances = learned.policies[NAME].readout.chances(table_inputs(test.table(learned.temperatures)))
    rows = []
    for place, name in list(enumerate(test.models))[1:]:
        gain = right[:, place] & ~right[:, 0]
        ours, own = _area(gain, chances[:, place] - chances[:, 0]), _area(gain, -confidence)
        last = right[:, -1] & ~right[:, place]
        beyond = "" if name == test.models[-1] else f"{_area(last, chances[:, -1] - chances[:, place]):.3f}"
        rows.append(f"{name} | {100 * gain.mean():.1f} % | {ours:.3f} | {own:.3f} | {beyond}")
    return rows


def _said(learned: Taught, test: Recording) -> dict[str, NDArray[np.float64]]:
    """What each reader says of each image, (n,)."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    fit, known = learned.train, learned.train.right[:, 0]
    read, due = (table_inputs(one.table(learned.temperatures)) for one in (fit, test))
    scaled = StandardScaler().fit(read)
    line = LogisticRegression(C=0.1, max_iter=2000).fit(scaled.transform(read)[:, :STATISTICS], known)
    found = {
        SHOWN: learned.policies[NAME].readout.chances(due)[:, 0],
        "logistic regression on the statistics alone": line.predict_proba(scaled.transform(due)[:, :STATISTICS])[:, 1],
    }
    for name, columns in (
        ("boosted trees on the same inputs", slice(None)),
        ("boosted trees on the embedding alone", slice(STATISTICS, None)),
    ):
        trees = HistGradientBoostingClassifier(max_iter=150, learning_rate=0.05, random_state=0)
        found[name] = trees.fit(read[:, columns], known).predict_proba(due[:, columns])[:, 1]
    found["the model's own confidence"] = test.confidences(learned.temperatures)[:, 0].astype(np.float64)
    for name, (named, make) in readers().items():
        columns_of = [PAPER_NAMES.index(feature) for feature in named]
        scaling = fit_scaling(fit.features[:, columns_of])
        reader = make()
        reader.fit(scaling.apply(fit.features[:, columns_of]), known)  # type: ignore[attr-defined]
        said = reader.predict_proba(scaling.apply(test.features[:, columns_of]))[:, 1]  # type: ignore[attr-defined]
        found[f"before any model ran: {name}"] = said
    return found


def _area(right: NDArray[np.bool_], said: NDArray[np.floating]) -> float:
    area = area_under_curve(right, said)
    return float("nan") if area is None else area


def _interval(values: NDArray[np.float64], sign: str = "") -> str:
    low, high = np.quantile(values, [0.025, 0.975])
    return f"{low:{sign}.3f} to {high:{sign}.3f}"
