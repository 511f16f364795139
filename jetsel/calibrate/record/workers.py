"""Process many images in threads, with reports of progress and few outcomes in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, TypeVar

from jetsel.calibrate.record.database import Store

Phase = Literal["reading", "comparing", "recording", "timing", "metering"]

Tell = Callable[[str, int, int], None]
"""Receives the phase, the number of items done, and their total."""
Stop = threading.Event
"""Set to end the work at the next image."""


def progress(phase: Phase, total: int, tell: Tell | None) -> Callable[[int], None]:
    """Report that nothing is done yet, and return a function that reports how many items are."""

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
    """Threads that process items and report progress. The store commits meanwhile what the caller wrote to it."""

    store: Store
    threads: int
    tell: Tell | None
    stop: Stop

    def work(
        self, phase: Phase, work: Callable[[Item], Outcome], items: Sequence[Item]
    ) -> Generator[tuple[Item, Outcome], None, None]:
        """Yield each item with its outcome, in the order of the items, until stopped; at most PAGE wait in memory.

        An exception of `work` is raised here. Closing the generator waits for running items and drops the others.
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
