"""The gate: skips frames that hardly differ from the last answered one, and estimates what that saves."""

from __future__ import annotations

import math
from typing import NamedTuple

import cv2
import numpy as np

from jetsel.base.errors import ConfigError

_SMALL = 64, 48  # pixels: a camera's noise averages out in them
_BLOCK = 4  # pixels of a block's side: 16 x 12 blocks, each 0.5 % of the frame
_CELLS_DOWN, _CELLS_ACROSS = 6, 8  # cells of 8 x 8 pixels, each 2 % of the frame
_DARK = 16  # grey levels: below it, noise counts as contrast no more than above
_LOG = (100 * np.log(np.arange(256) + _DARK)).astype(np.float32)  # a difference of 1 is 1 % more light
FEATURES = ("blocks", "edges", "histogram")
"""Features of frames that can be compared; see `described` and `difference`. Reducto (Li et al., SIGCOMM 2020) chooses
for each camera among differences of pixels, areas, edges and others, over the whole frame. These features also find a
small object, because the block or cell that differs most decides."""


class GateSetting(NamedTuple):
    """Two frames are the same if their feature differs by less than the threshold."""

    feature: str
    skip_below: float


def gate_of(text: str, option: str) -> GateSetting | None:
    """Read FEATURE:THRESHOLD, or none; raises ConfigError with the option's name and an example."""
    if text == "none":
        return None
    feature, _, threshold = text.partition(":")
    try:
        skip_below = float(threshold)
    except ValueError:
        skip_below = -1.0
    if feature not in FEATURES or not 0 < skip_below < math.inf:
        raise ConfigError(f"{option} {text}: use FEATURE:THRESHOLD of {', '.join(FEATURES)}: blocks:4; or none")
    return GateSetting(feature, skip_below)


def gray_copy(frame: np.ndarray) -> np.ndarray:
    """Return the part of a frame, (height, width[, 3]) uint8 BGR or gray, that all features read: (48, 64) uint8 gray.

    The copy of a copy is the same.
    """
    small = cv2.resize(frame, _SMALL, interpolation=cv2.INTER_AREA)
    return cv2.cvtColor(small, cv2.COLOR_BGR2GRAY) if small.ndim == 3 else small


def described(frame: np.ndarray, feature: str) -> np.ndarray:
    """Return the data by which a feature compares frames, (height, width[, 3]) uint8.

    blocks: its gray copy, (48, 64) uint8, in grey levels.
    edges: the contrast at each pixel of the copy, (48, 64) uint8, in percent: the gradient (Sobel) of the logarithm of
    its brightness. More or less light on the scene multiplies all brightness, which the gradient of the logarithm
    does not contain (Horn, Determining Lightness from an Image, 1974).
    histogram: the grey levels of each of 8 x 6 cells, sorted, (48, 64) uint8, a row for each cell. They hold what an
    exact histogram does, so moves inside a cell, as of leaves, change nothing.
    """
    copy = gray_copy(frame)
    if feature == "edges":
        logarithm = cv2.LUT(copy, _LOG)
        across = cv2.Sobel(logarithm, cv2.CV_32F, 1, 0, scale=1 / 4)
        down = cv2.Sobel(logarithm, cv2.CV_32F, 0, 1, scale=1 / 4)
        return cv2.convertScaleAbs(cv2.magnitude(across, down))
    if feature == "histogram":
        width, height = _SMALL
        cells = copy.reshape(_CELLS_DOWN, height // _CELLS_DOWN, _CELLS_ACROSS, width // _CELLS_ACROSS)
        return np.sort(cells.swapaxes(1, 2).reshape(_CELLS_DOWN * _CELLS_ACROSS, -1), axis=1)
    return copy


def difference(first: np.ndarray, second: np.ndarray, feature: str) -> float:
    """Return the difference of two results of `described`, in the feature's unit.

    blocks and edges: the mean difference in the block that differs most. histogram: of the sorted levels in the cell
    that differs most, which is the earth mover's distance of its histograms (Rubner et al., IJCV 2000).
    """
    difference_map = cv2.absdiff(first, second)
    if feature == "histogram":
        return float(cv2.reduce(difference_map, 1, cv2.REDUCE_AVG, dtype=cv2.CV_32F).max())
    levels = difference_map.astype(np.float32)  # a mean of integers would be rounded
    return float(cv2.resize(levels, None, fx=1 / _BLOCK, fy=1 / _BLOCK, interpolation=cv2.INTER_AREA).max())


class Gate:
    """Compares frames with the last answered one. setting: None skips none. ask_again_s: the longest skip."""

    def __init__(self, setting: GateSetting | None, ask_again_s: float) -> None:
        self._setting, self._ask_again_s = setting, ask_again_s
        self._seen: np.ndarray | None = None
        self._answered: np.ndarray | None = None
        self._seen_s = self._answered_s = 0.0
        self._total_ms = self._total_mj = 0.0
        self._n_metered = 0
        self.n_skipped = self.n_answered = 0

    def skips(self, frame: np.ndarray, now_s: float) -> bool:
        """Return whether to skip a frame, (height, width[, 3]) uint8, as it hardly differs from the last answered one.

        now_s: by any clock that does not jump. After `ask_again_s` without an answer, no frame is skipped.
        """
        if self._setting is None:
            return False
        self._seen, self._seen_s = described(frame, self._setting.feature), now_s
        if self._answered is None or now_s - self._answered_s >= self._ask_again_s:
            return False
        return difference(self._seen, self._answered, self._setting.feature) < self._setting.skip_below

    def record_answer(self, took_ms: float, energy_mj: float | None) -> None:
        """Compare later frames with the last one, which has its answer now, and count the answer's time and energy."""
        self._answered, self._answered_s = self._seen, self._seen_s
        self.n_answered += 1
        self._total_ms += took_ms
        if energy_mj is not None:
            self._total_mj += energy_mj
            self._n_metered += 1

    def forget(self) -> None:
        """Do not skip the next frame: other models may answer now."""
        self._answered = None

    @property
    def saved_ms(self) -> float | None:
        """Time in ms that the skipped frames would have taken, at the mean of answered ones; None without any."""
        return self.n_skipped * self._total_ms / self.n_answered if self.n_answered else None

    @property
    def saved_mj(self) -> float | None:
        """Energy in mJ that the skipped frames would have taken, at the mean of known energies; None without any."""
        return self.n_skipped * self._total_mj / self._n_metered if self._n_metered else None
