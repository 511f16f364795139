"""Which of several edges is asked: one at a time, the fastest of those that can be asked (MODI, Figure 1: Edge-i)."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Collection, Sequence

from jetsel.base.events import event
from jetsel.edge.server import Server

log = logging.getLogger("jetsel.models")

FASTER = 0.8  # of what the one in use takes: less of a difference is no reason to leave it
LOOKS = 2  # in a row at which another has to be faster


class Choice:
    """The edges, and the one in use. Any thread may read; the edge's own thread has it choose.

    handovers: how often another came into use.
    """

    def __init__(self, servers: Sequence[Server]) -> None:
        """servers: one or more; the first is in use until another can be asked, and it cannot."""
        self.servers = servers
        self.used = servers[0]
        self.handovers = 0

    def able(self, model: str, but: Collection[Server] = ()) -> list[Server]:
        """Return those that a model can be asked at: the one in use first, then the faster ones. but: none of these."""
        found = [one for one in self.servers if one not in but and one.unavailable(model) is None]
        return sorted(found, key=lambda one: (one is not self.used, _expected_ms(one)))

    def saw(self, seen: Server) -> None:
        """Hand over where the one in use cannot be asked, or `seen`, just looked at, is the faster one once more."""
        if self.used.reason is not None:
            there = [one for one in self.servers if one.reason is None]
            if there:
                self._hand_over(min(there, key=_expected_ms), self.used.reason)
        elif seen is not self.used:
            is_faster = seen.reason is None and _expected_ms(seen) < FASTER * _expected_ms(self.used)
            seen.lead = seen.lead + 1 if is_faster else 0
            if seen.lead >= LOOKS:
                took = f"it takes {_expected_ms(seen):.1f} ms and not {_expected_ms(self.used):.1f} ms"
                self._hand_over(seen, took)

    def _hand_over(self, server: Server, why: str) -> None:
        told = event("edge-handover", url=server.url, left=self.used.url)
        log.info("%s is asked from now on, and not %s: %s", server.url, self.used.url, why, extra=told)
        self.used, self.handovers = server, self.handovers + 1
        for one in self.servers:
            one.lead = 0


def _expected_ms(server: Server) -> float:
    """What a usual photograph takes there as a whole; infinite where that is not known."""
    known = server.compared.at(time.monotonic())
    return math.inf if known is None else known[0]
