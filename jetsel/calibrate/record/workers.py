"""Process many images in threads, with reports of progress and few outcomes in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from jetsel.calibrate.record.database import Store

Reporter = Callable[[str, int, int], None]
"""Receives progress: the name of the phase, the number of items done, and their total."""
StopEvent = threading.Event
"""Event that ends the recording at the next image when it is set."""


class RecordingPlan(NamedTuple):
    """How much a run has to do."""

    images: int  # that lack predictions
    models: int  # that lack predictions
    estimated_s: float  # of recording and timing


@dataclass(frozen=True)
class Observer:
    """Follows a recording, and stops it by `stop`."""

    report_progress: Reporter = lambda *_: None
    stop: StopEvent = field(default_factory=StopEvent)
    announce: Callable[[RecordingPlan], None] | None = None  # receives the plan before the work starts


Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

MOST_WAITING = 256  # finished items that wait in memory for the caller


@dataclass(frozen=True)
class Workers:
    """Threads that process items and report progress. Meanwhile, the store commits what the caller wrote to it."""

    store: Store
    threads: int
    observer: Observer

    def work(
        self, phase: str, process: Callable[[Item], Outcome], items: Sequence[Item]
    ) -> Generator[tuple[Item, Outcome], None, None]:
        """Yield each item with the result of `process`, in the order of the items, until the observer stops it.

        phase: name for reports. At most MOST_WAITING results wait in memory. An exception of `process` is raised here.
        Closing the generator waits for running items and drops the others.
        """
        self.observer.report_progress(phase, 0, len(items))
        pool = ThreadPoolExecutor(self.threads, thread_name_prefix="jetsel-record")
        try:
            for start in range(0, len(items), MOST_WAITING):
                page = items[start : start + MOST_WAITING]
                for done, outcome in enumerate(zip(page, pool.map(process, page), strict=True), start + 1):
                    yield outcome
                    self.store.commit_when_due()
                    self.observer.report_progress(phase, done, len(items))
                    if self.observer.stop.is_set():
                        return
        finally:
            pool.shutdown(cancel_futures=True)
