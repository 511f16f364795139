"""Which frames need no question, as they hardly differ from the last one that was answered, and what that saves."""

from __future__ import annotations

import cv2
import numpy as np

_SMALL = 64, 48  # pixels: a camera's noise averages out in them


class Gate:
    """Compares small gray copies. skip_below: mean absolute difference in grey levels, 0 to 255; 0 skips nothing."""

    def __init__(self, skip_below: float) -> None:
        self._skip_below = skip_below
        self._seen: np.ndarray | None = None
        self._answered: np.ndarray | None = None
        self._total_ms = self._total_mj = 0.0
        self._n_metered = 0
        self.n_skipped = self.n_answered = 0

    def skips(self, frame: np.ndarray) -> bool:
        """Whether the frame, (height, width[, 3]) uint8, hardly differs from the last answered one; counts those."""
        small = cv2.resize(frame, _SMALL, interpolation=cv2.INTER_AREA)
        self._seen = cv2.cvtColor(small, cv2.COLOR_BGR2GRAY) if small.ndim == 3 else small
        answered = self._answered
        is_same = answered is not None and float(cv2.absdiff(self._seen, answered).mean()) < self._skip_below
        self.n_skipped += is_same
        return is_same

    def answered(self, took_ms: float, energy_mj: float | None) -> None:
        """Take in that the last frame that was not skipped has its answer, and what that took."""
        self._answered = self._seen
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
