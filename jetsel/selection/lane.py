"""One model as the driver sees it: its engine, the runs that wait for it, and how long they take."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from jetsel.engines import Engine
from jetsel.selection.flight import Flight

PATIENCE_S = 0.01  # that a run waits for others of its model: some ten photographs are decoded meanwhile
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

    def is_due(self, batch: int, now_s: float) -> bool:
        """Whether a whole batch waits, or a flight that has a deadline or has waited long enough for others."""
        return (
            len(self.waiting) >= batch
            or now_s - self.waiting[0].waiting_since_s >= PATIENCE_S
            or any(flight.deadline_s is not None for flight in self.waiting)
        )

    def percentile_ms(self, share: float) -> float | None:
        """The time of one image that this share of the recent runs stayed below; None where none was measured."""
        recent = sorted(self.times_ms)
        return recent[min(int(share * len(recent)), len(recent) - 1)] if recent else None
