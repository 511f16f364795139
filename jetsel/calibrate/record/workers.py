"""Work on many photographs in threads, which reports its progress and holds few outcomes in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, TypeVar

from jetsel.calibrate.record.database import Store

Phase = Literal["reading", "comparing", "recording", "timing", "metering"]

Tell = Callable[[str, int, int], None]
"""Told which phase it is, how many are done, and of how many."""
Stop = threading.Event
"""Set if the work shall end at the next photograph."""


def progress(phase: Phase, total: int, tell: Tell | None) -> Callable[[int], None]:
    """Tell that none of the total is done, and return what tells how many are."""

    def reach(done: int) -> None:
        if tell is not None:
            tell(phase, done, total)

    reach(0)
    return reach


Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

PAGE = 256


@dataclass(frozen=True)
class Workers:
    """A number of threads, which report their progress; what the taker wrote for an outcome is committed by the way."""

    store: Store
    threads: int
    tell: Tell | None
    stop: Stop

    def work(
        self, phase: Phase, work: Callable[[Item], Outcome], items: Sequence[Item]
    ) -> Generator[tuple[Item, Outcome], None, None]:
        """Yield each item with its outcome in the order given, until stopped; few are begun and not yet yielded.

        An exception of `work` is raised here. Closing the generator waits for what runs and drops what waits.
        """
        reach = progress(phase, len(items), self.tell)
        pool = ThreadPoolExecutor(self.threads, thread_name_prefix="jetsel-record")
        try:
            for start in range(0, len(items), PAGE):
                page = items[start : start + PAGE]
                for done, outcome in enumerate(zip(page, pool.map(work, page), strict=True), start + 1):
                    yield outcome
                    self.store.commit_when_due()
                    reach(done)
                    if self.stop.is_set():
                        return
        finally:
            pool.shutdown(cancel_futures=True)
