"""Read back what models and features take in energy, and how well that is known."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

NOT_ENDED = "not every model is metered: record until it has ended"
_FEATURES = "the features"

_Row = tuple[str, int, float, float, float, float, float]  # what, photograph, mJ: mean, its three errors; ms


@dataclass(frozen=True)
class Energies:
    """What one run takes above idle power.

    Means over the photographs on which every model and the features were metered. mean_mj: model -> mean.
    half_width_mj: model -> half of its 95 % interval. chooser_w: mean watts above idle while features were extracted.
    """

    mean_mj: Mapping[str, float]
    half_width_mj: Mapping[str, float]
    chooser_w: float


def read_energies(file: sqlite3.Connection, models: Sequence[str]) -> Energies | str:
    """Return the energies of these models and of the features, or the reason why they are not known."""
    rows: list[_Row] = file.execute(
        "SELECT COALESCE(name, ?), photograph, mean_mj, scatter_mj, sensor_mj, idle_mj, mean_ms FROM energies"
        " LEFT JOIN models ON models.id = model WHERE mean_mj NOT NULL",
        (_FEATURES,),
    ).fetchall()
    wanted = (*models, _FEATURES)
    common = set.intersection(*({row[1] for row in rows if row[0] == name} for name in wanted))
    if not common:
        return _reason(file)
    of = {name: [row for row in rows if row[0] == name and row[1] in common] for name in wanted}
    mean_mj = {name: float(np.mean([row[2] for row in found])) for name, found in of.items()}
    half_mj = {name: _half_width_mj(found) for name, found in of.items()}
    for name in wanted:
        if mean_mj[name] <= half_mj[name]:
            return (
                f"what {name} take{'' if name == _FEATURES else 's'} cannot be told from nothing: {mean_mj[name]:.3g}"
                f" \u00b1 {half_mj[name]:.3g} mJ a run; measure the idle power again, on a quiet board"
            )
    chooser_w = mean_mj.pop(_FEATURES) / float(np.mean([row[6] for row in of[_FEATURES]]))
    return Energies(mean_mj, {name: half_mj[name] for name in models}, chooser_w)


def _half_width_mj(rows: Sequence[_Row]) -> float:
    """Return half of the 95 % interval of the mean over photographs.

    The windows' scatter is independent from one photograph to the next, and so is `sensor_mj`, which only recordings of
    earlier versions have; the error of the idle power is the same in all. All in quadrature (JCGM 100:2008, 5.1.2).
    """
    independent_mj = math.sqrt(sum(row[3] ** 2 + row[4] ** 2 for row in rows)) / len(rows)
    return math.hypot(independent_mj, float(np.mean([row[5] for row in rows])))


def _reason(file: sqlite3.Connection) -> str:
    """Why a window failed, else why the last run metered nothing, else that it was cut off."""
    failed = file.execute("SELECT reason FROM energies WHERE mean_mj IS NULL LIMIT 1").fetchone()
    last = file.execute("SELECT unmetered FROM conditions ORDER BY id DESC LIMIT 1").fetchone()
    found = failed or last or (None,)
    return found[0] or NOT_ENDED
