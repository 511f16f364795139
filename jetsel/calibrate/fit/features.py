"""Measure how long features take on some of the images."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from jetsel import image
from jetsel.base.errors import BadImageError, CalibrationError, ImageTooLargeError
from jetsel.calibrate.record.cuts import WHOLE, CutImage, decode_cut
from jetsel.features import NAMES

TIMED = 40  # images
ROUNDS = 9  # each measures both, as the speed of a processor varies


class FeatureClock:
    """Estimates how long it takes, on the machine that made the recording, to extract a subset of the features.

    It measures here the subset's share of the time of all features, and applies this share to the recorded time, which
    was measured with more care and perhaps on another machine.
    """

    def __init__(self, images: Sequence[CutImage], features_px: int, limits: image.Limits, all_ms: float) -> None:
        """images: to measure on. features_px: most pixels that features read. all_ms: recorded time of all features."""
        self._images, self._recorded_ms, self._features_px, self._limits = images, all_ms, features_px, limits
        self._cached_ms: dict[tuple[str, ...], float] = {}

    def __call__(self, names: tuple[str, ...]) -> float:
        """Return the milliseconds that these features take for one image on the recording's machine; 0 for none."""
        if names and names not in self._cached_ms:
            shares = [self._extract_s(names) / self._extract_s(NAMES) for _ in range(ROUNDS)]
            self._cached_ms[names] = self._recorded_ms * float(np.median(shares))
        return self._cached_ms.get(names, 0.0)

    def _extract_s(self, names: tuple[str, ...]) -> float:
        """Return the seconds that these features of all images take on this machine."""
        began_s = time.perf_counter()
        for picture in self._images:
            picture.extract(self._limits, self._features_px, names)
        return time.perf_counter() - began_s


def decode_sample(paths: Sequence[str], decode_px: int, limits: image.Limits) -> list[CutImage]:
    """Decode up to TIMED images, evenly spread over `paths`; raises CalibrationError if none can be read any more."""
    chosen = paths[:: max(1, len(paths) // TIMED)][:TIMED]
    images = []
    for path in chosen:
        with suppress(OSError, BadImageError, ImageTooLargeError):
            images.append(decode_cut(image.read_file(Path(path), limits), WHOLE, limits, decode_px))
    if not images:
        raise CalibrationError(f"{paths[0]}: cannot be read any more: put the images back, or record again")
    return images
