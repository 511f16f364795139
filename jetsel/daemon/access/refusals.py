"""What is told of refused peers: each address once, and how often they came again from time to time."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable

from jetsel.events import event

log = logging.getLogger("jetsel.access")

MOST_ADDRESSES = 256  # remembered; of more only the count is told
SUMMARY_EVERY_S = 3600.0


class Refusals:
    """Remembers the addresses that were refused last, each with how often since the last summary. For one thread."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._again: OrderedDict[str, int] = OrderedDict()
        self._others = 0
        self._summary_s = now() + SUMMARY_EVERY_S

    def __len__(self) -> int:
        return len(self._again)

    def note(self, address: str, reason: str) -> None:
        """Tell of a refused peer, unless its address was told of already."""
        if address in self._again:
            self._again[address] += 1
            self._again.move_to_end(address)
        elif len(self._again) < MOST_ADDRESSES:
            self._again[address] = 0
            told = event("peer-refused", address=address, reason=reason)
            log.warning("%s was refused: %s", address, reason, extra=told)
        else:
            self._others += 1
        self.look()

    def look(self) -> None:
        """Tell how many came again, once an hour; then addresses that stayed away are forgotten."""
        if self._now() < self._summary_s:
            return
        self._summary_s = self._now() + SUMMARY_EVERY_S
        came = {address: count for address, count in self._again.items() if count}
        if came or self._others:
            count = sum(came.values()) + self._others
            most = sorted(came, key=lambda address: -came[address])[:3]
            named = f", most from {', '.join(f'{address} ({came[address]})' for address in most)}" if most else ""
            told = event("peers-refused-again", count=count, addresses=len(came), others=self._others)
            log.warning(
                "peers were refused %d times more in the last hour%s; %d times from addresses not named before",
                count,
                named,
                self._others,
                extra=told,
            )
        self._again = OrderedDict.fromkeys(came, 0)
        self._others = 0
