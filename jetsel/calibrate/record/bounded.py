"""Work on many things in threads while few outcomes are ever held: memory does not grow with their number."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

PAGE = 256


def in_order(
    work: Callable[[Item], Outcome], items: Sequence[Item], workers: int
) -> Generator[tuple[Item, Outcome], None, None]:
    """Yield each item with its outcome in the order given; at most a page of them is begun and not yet yielded.

    An exception of `work` is raised here. Closing the generator waits for what runs and drops what waits.
    """
    pool = ThreadPoolExecutor(workers, thread_name_prefix="jetsel-record")
    try:
        for start in range(0, len(items), PAGE):
            page = items[start : start + PAGE]
            yield from zip(page, pool.map(work, page), strict=True)
    finally:
        pool.shutdown(cancel_futures=True)
