"""A calibration's arrays by the names that they have in its file, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from jetsel.premodel.arrays import DamagedError, Kind
from jetsel.premodel.artefact import Calibration, Facts
from jetsel.premodel.trees import DTYPES, Trees

_PLAIN = ("minimum", "maximum", "points")
_TABLES = ("right", "sure")  # criterion -> table of yes and no


def flatten(calibration: Calibration) -> dict[str, tuple[NDArray[Any], Kind]]:
    """Return each array and how it is stored: tables of yes and no in bytes, embeddings in float16."""
    flat: dict[str, NDArray[Any]] = {name: getattr(calibration, name).astype("<f4") for name in _PLAIN}
    if calibration.embeddings is not None:
        flat["embeddings"] = calibration.embeddings.astype("<f2")
    for table in _TABLES:
        for criterion, values in getattr(calibration, table).items():
            flat[f"{table}_{criterion}"] = values.astype("|u1")
    for criterion, trees in calibration.trees.items():
        for name, array in trees._asdict().items():
            flat[f"trees_{criterion}_{name}"] = array
    return {name: (array, Kind(array.dtype.str, array.shape)) for name, array in flat.items()}


def gather(facts: Facts, criteria: tuple[str, ...], found: dict[str, NDArray[Any]]) -> Calibration:
    """Put a calibration together from its facts and arrays, which become read-only.

    Raises DamagedError where one is missing, of another type, or not asked for.
    """
    left = dict(found)

    def taken(name: str, dtype: str) -> NDArray[Any]:
        array = left.pop(name, None)
        if array is None or array.dtype.str != dtype:
            raise DamagedError(
                f"{name} is {'missing' if array is None else array.dtype.str} where {dtype} was expected"
            )
        return array

    plain = {name: taken(name, "<f4") for name in _PLAIN}
    embeddings = _fixed(taken("embeddings", "<f2").astype(np.float32)) if facts.embedding else None
    right = {criterion: _fixed(taken(f"right_{criterion}", "|u1") != 0) for criterion in criteria}
    sure = {criterion: _fixed(taken(f"sure_{criterion}", "|u1") != 0) for criterion in facts.skip}
    trees = {
        criterion: Trees(**{name: taken(f"trees_{criterion}_{name}", dtype) for name, dtype in DTYPES.items()})
        for criterion in facts.boosted
    }
    if left:
        raise DamagedError(f"it holds {', '.join(sorted(left))}, which its manifest has no use for")
    values: dict[str, Any] = {name: getattr(facts, name) for name in Facts.__struct_fields__}
    return Calibration(**(values | plain), right=right, sure=sure, embeddings=embeddings, trees=trees)


def _fixed(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array
