"""One region of a camera: its gate, its label, and what was counted."""

from __future__ import annotations

import numpy as np

from jetsel.addons.cameras.gate import Gate, GateSetting
from jetsel.addons.cameras.labels import Change, Labels, reported_label
from jetsel.addons.cameras.region import Region
from jetsel.wire import Answer


class View:
    """name: of the region; None: the camera's only one. seen: what was looked at last, (height, width[, 3]) uint8."""

    def __init__(self, name: str | None, region: Region, gate: GateSetting | None, ask_again_s: float, stay: int):
        self.name, self.region = name, region
        self.gate, self._labels = Gate(gate, ask_again_s), Labels(stay)
        self.n_asked = self.n_changes = 0
        self.holds: Change | None = None
        self.seen: np.ndarray | None = None

    def skips(self, frame: np.ndarray, now_s: float) -> bool:
        """Whether the region of a frame needs no question; counts those. No frame is skipped while a label changes."""
        self.seen = self.region.of(frame)
        is_skipped = self.gate.skips(self.seen, now_s) and self._labels.is_settled
        self.gate.n_skipped += is_skipped
        return is_skipped

    def answered(self, answer: Answer, now_s: float) -> Change | None:
        """Take in the answer about what was seen; return the change that it completes. now_s: of time.time()."""
        self.gate.answered(answer.stages_ms.total, answer.energy_mj)
        change = self._labels.see(answer, now_s)
        if change is not None:
            self.holds = change
            self.n_changes += 1
        return change

    @property
    def label(self) -> tuple[str | None, str | None, float | None]:
        """The label that holds, its identifier and its probability; None before the first."""
        if self.holds is None:
            return None, None, None
        label, wnid = reported_label(self.holds.answer)
        return label, wnid, self.holds.answer.probability
