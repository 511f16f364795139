"""What the daemon counts: requests by outcome."""

from __future__ import annotations

import threading
import time
from collections import Counter


class Tally:
    """Counters behind one lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._outcomes: Counter[str] = Counter()
        self.started_s = time.monotonic()

    def count(self, outcome: str) -> None:
        """Count a request, admitted or not, by `ok` or error code."""
        with self._lock:
            self._outcomes[outcome] += 1

    def outcomes(self) -> dict[str, int]:
        """Requests so far by `ok` or error code."""
        with self._lock:
            return dict(self._outcomes)
