"""What fitting asks of the photographs' own files: how long some of the features take."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from jetsel import image
from jetsel.calibrate.record.bench import features_of
from jetsel.errors import BadImageError, CalibrationError, ImageTooLargeError
from jetsel.features import NAMES

TIMED = 40  # photographs
ROUNDS = 5


class FeatureClock:
    """Times the extraction of some features on some of the photographs.

    Only the share of the whole table's time is taken from here, since the whole was timed with more care, and perhaps
    on another machine, when the recording was made.
    """

    def __init__(
        self, paths: Sequence[str], decode_px: int, features_px: int, limits: image.Limits, whole_ms: float
    ) -> None:
        """Decode up to 40 of the paths. features_px: the pixels that features see at most.

        Raises CalibrationError where not one can be read any more.
        """
        self._whole_ms, self._features_px, self._limits = whole_ms, features_px, limits
        step = max(1, len(paths) // TIMED)
        self._photographs = [
            shown for path in paths[::step][:TIMED] if (shown := _decoded(path, decode_px, limits)) is not None
        ]
        if not self._photographs:
            raise CalibrationError(f"{paths[0]}: cannot be read any more: put the photographs back, or record again")
        self._table_ms = self._measured(NAMES)
        self._known_ms: dict[tuple[str, ...], float] = {}

    def __call__(self, names: tuple[str, ...]) -> float:
        """The milliseconds that these features take on one photograph, on the recording's machine."""
        if names and names not in self._known_ms:
            self._known_ms[names] = self._whole_ms * self._measured(names) / self._table_ms
        return self._known_ms.get(names, 0.0)

    def _measured(self, names: tuple[str, ...]) -> float:
        """The median over rounds of the mean over photographs."""
        rounds = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            for photograph, data in self._photographs:
                features_of(photograph, data, self._limits, self._features_px, names)
            rounds.append((time.perf_counter() - began) * 1e3 / len(self._photographs))
        return float(np.median(rounds))


def _decoded(path: str, decode_px: int, limits: image.Limits) -> tuple[image.Photograph, bytes] | None:
    try:
        data = image.read_file(Path(path), limits)
        return image.decode(data, limits, decode_px), data
    except (OSError, BadImageError, ImageTooLargeError):
        return None
