"""Work on many things in threads while only a few of them are ever held: memory does not grow with their number."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


def in_order(
    work: Callable[[Item], Outcome], items: Iterable[Item], workers: int
) -> Generator[tuple[Item, Outcome], None, None]:
    """Yield each item with its outcome in the order given; at most 2 x workers are begun and not yet yielded.

    `items` is drawn in the caller's thread. An exception of `work` is raised here. Closing the generator waits for what
    runs and drops what waits.
    """
    pool = ThreadPoolExecutor(workers, thread_name_prefix="jetsel-record")
    begun: deque[tuple[Item, Future[Outcome]]] = deque()
    try:
        for item in items:
            begun.append((item, pool.submit(work, item)))
            if len(begun) == 2 * workers:
                done, future = begun.popleft()
                yield done, future.result()
        while begun:
            done, future = begun.popleft()
            yield done, future.result()
    finally:
        pool.shutdown(cancel_futures=True)
