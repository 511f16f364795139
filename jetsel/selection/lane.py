"""One model as the driver sees it: its engine, the runs that wait for it, and how long they take."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from jetsel.engines import Engine
from jetsel.selection.flight import Flight

RECENT = 256  # runs from which a lane's times are told: a few seconds under load


@dataclass(eq=False)
class Lane:
    """A model, its waiting flights and its recent times.

    temperature divides the logits (Guo et al. 2017, section 4.2). unavailable: the reason, or None where it runs.
    """

    model: str
    engine: Engine | None
    temperature: float = 1.0
    unavailable: str | None = None
    waiting: deque[Flight] = field(default_factory=deque)
    running: int = 0
    runs: int = 0
    times_ms: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))  # of one image: a batch's, shared out

    def percentile_ms(self, share: float) -> float | None:
        """The time of one image that this share of the recent runs stayed below; None where none was measured."""
        recent = sorted(self.times_ms)
        return recent[min(int(share * len(recent)), len(recent) - 1)] if recent else None
