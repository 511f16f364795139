"""Which frames need no question, as they hardly differ from the last one that was answered, and what that saves."""

from __future__ import annotations

import math
from typing import NamedTuple

import cv2
import numpy as np

from jetsel.base.errors import ConfigError

_SMALL = 64, 48  # pixels: a camera's noise averages out in them
_BLOCK = 4  # of these to a side of a block: 16 x 12 blocks, each 0.5 % of the frame
FEATURES = ("blocks",)


class GateSetting(NamedTuple):
    """Two frames are the same if what the feature says of them differs by less than the threshold."""

    feature: str
    skip_below: float

    def __str__(self) -> str:
        """As `gate_of` reads it."""
        return f"{self.feature}:{self.skip_below:g}"


def gate_of(text: str, option: str) -> GateSetting | None:
    """Read FEATURE:THRESHOLD, or none; raises ConfigError, which names the option, with an example."""
    if text == "none":
        return None
    feature, _, threshold = text.partition(":")
    try:
        skip_below = float(threshold)
    except ValueError:
        skip_below = -1.0
    if feature not in FEATURES or not 0 < skip_below < math.inf:
        raise ConfigError(f"{option} {text}: use FEATURE:THRESHOLD of {', '.join(FEATURES)}: blocks:6; or none")
    return GateSetting(feature, skip_below)


def described(frame: np.ndarray) -> np.ndarray:
    """Return what is compared of a frame, (height, width[, 3]) uint8: (48, 64) uint8."""
    small = cv2.resize(frame, _SMALL, interpolation=cv2.INTER_AREA)
    return cv2.cvtColor(small, cv2.COLOR_BGR2GRAY) if small.ndim == 3 else small


def difference(one: np.ndarray, other: np.ndarray) -> float:
    """Return the mean difference in grey levels of the block that differs most."""
    blocks = cv2.resize(cv2.absdiff(one, other), None, fx=1 / _BLOCK, fy=1 / _BLOCK, interpolation=cv2.INTER_AREA)
    return float(blocks.max())


class Gate:
    """Compares frames with the last answered one. setting: None skips nothing. ask_again_s: skips no longer than so."""

    def __init__(self, setting: GateSetting | None, ask_again_s: float) -> None:
        self._setting, self._ask_again_s = setting, ask_again_s
        self._seen: np.ndarray | None = None
        self._answered: np.ndarray | None = None
        self._seen_s = self._answered_s = 0.0
        self._total_ms = self._total_mj = 0.0
        self._n_metered = 0
        self.n_skipped = self.n_answered = 0

    def skips(self, frame: np.ndarray, now_s: float) -> bool:
        """Whether the frame, (height, width[, 3]) uint8, hardly differs from the last answered one, of just now."""
        if self._setting is None:
            return False
        self._seen, self._seen_s = described(frame), now_s
        if self._answered is None or now_s - self._answered_s >= self._ask_again_s:
            return False
        return difference(self._seen, self._answered) < self._setting.skip_below

    def answered(self, took_ms: float, energy_mj: float | None) -> None:
        """Take in that the last frame that was not skipped has its answer, and what that took."""
        self._answered, self._answered_s = self._seen, self._seen_s
        self.n_answered += 1
        self._total_ms += took_ms
        if energy_mj is not None:
            self._total_mj += energy_mj
            self._n_metered += 1

    def forget(self) -> None:
        """Have the next frame asked about, whatever it shows: other models may answer now."""
        self._answered = None

    @property
    def saved_ms(self) -> float | None:
        """The daemon's time that the skipped frames would have taken, at the mean of the answered; None without any."""
        return self.n_skipped * self._total_ms / self.n_answered if self.n_answered else None

    @property
    def saved_mj(self) -> float | None:
        """Their energy, at the mean of those whose energy is known; None if none is."""
        return self.n_skipped * self._total_mj / self._n_metered if self._n_metered else None
