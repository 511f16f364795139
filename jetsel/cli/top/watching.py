"""Looks at a daemon again and again, in a thread of its own, whether or not it is there."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from jetsel.bell import Bell
from jetsel.cli.top.rates import Rates, rates
from jetsel.errors import JetselError

if TYPE_CHECKING:
    from jetsel.client import Client
    from jetsel.wire import StatusReply


@dataclass(frozen=True)
class Seen:
    """What the last look showed, and where it showed nothing, what the last good one had.

    number: of the look, from 1. at: of the last answer, by the wall clock and by the monotonic one.
    gone: why there was no answer this time, None where there was.
    """

    number: int
    reply: StatusReply
    rates: Rates
    at: datetime
    at_s: float
    gone: str | None = None


class Watch:
    """Looks every `interval_s` seconds from the first look on; `bell` rings after each."""

    def __init__(self, client: Client, interval_s: float) -> None:
        """Look once; raises what Client.status raises, so that a wrong endpoint is told and not waited for."""
        self._client = client
        self._interval_s = interval_s
        self._stopped = threading.Event()
        self.bell = Bell()
        reply = client.status()
        self.seen = Seen(1, reply, rates(None, reply), datetime.now(), time.monotonic())
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        """Go on looking."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more. A look that waits for its answer is left to itself."""
        self._stopped.set()

    def _run(self) -> None:
        due_s = self.seen.at_s + self._interval_s
        while not self._stopped.wait(max(0.0, due_s - time.monotonic())):
            self.seen = self._look(self.seen)
            self.bell.ring()
            due_s = max(due_s + self._interval_s, time.monotonic())

    def _look(self, before: Seen) -> Seen:
        try:
            reply = self._client.status()
        except JetselError as error:
            return replace(before, number=before.number + 1, gone=str(error))
        found = rates(before.reply, reply)
        return Seen(before.number + 1, reply, found, datetime.now(), time.monotonic())
