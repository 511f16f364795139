"""The daemon's threads: every piece is done once, none waits while a thread sleeps, and no defect thins them out."""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import pytest

from jetsel.daemon.dispatcher import Dispatcher
from jetsel.daemon.worker_pool import WorkerPool

LIMIT_S = 60.0  # how long a test waits for what must come; it comes at once

Piece = Callable[[], None]


class Queue:
    """Work whose messages are pieces; a message rouses one sleeper, as a wake does, and nothing else rouses any."""

    def __init__(self) -> None:
        self._inbox: deque[Piece] = deque()
        self._pieces: deque[Piece] = deque()
        self._arrival = threading.Condition()
        self._rings = 0

    def post(self, *pieces: Piece) -> None:
        """Let one message for each piece arrive, all at once."""
        with self._arrival:
            self._inbox.extend(pieces)
            self._arrival.notify()

    def later(self, piece: Piece) -> None:
        """Add a piece that no message brings, as a decoded photograph waits for its model."""
        self._pieces.append(piece)

    def wait(self) -> None:
        with self._arrival:
            self._arrival.wait_for(lambda: self._inbox or self._rings)
            self._rings -= self._rings > 0

    def wake(self) -> None:
        with self._arrival:
            self._rings += 1
            self._arrival.notify()

    def receive(self) -> None:
        with self._arrival:
            self._pieces.extend(self._inbox)
            self._inbox.clear()

    def next_piece(self) -> Piece | None:
        return self._pieces.popleft() if self._pieces else None

    def has_more(self) -> bool:
        return bool(self._pieces)

    def turned(self) -> None:
        """Nobody watches."""


def begun(work: Queue, workers: int) -> WorkerPool:
    pool = WorkerPool(cast("Dispatcher", work), workers)
    pool.start()
    return pool


@contextmanager
def running(work: Queue, workers: int) -> Iterator[None]:
    pool = begun(work, workers)
    try:
        yield
    finally:
        assert pool.stop(LIMIT_S)


class Done:
    """Counts what was done, and waits for it."""

    def __init__(self) -> None:
        self._change = threading.Condition()
        self.seen: Counter[object] = Counter()

    def piece(self, name: object) -> Piece:
        def do() -> None:
            with self._change:
                self.seen[name] += 1
                self._change.notify_all()

        return do

    def wait_for(self, count: int) -> None:
        with self._change:
            came = self._change.wait_for(lambda: self.seen.total() >= count, LIMIT_S)
        assert came, f"{self.seen.total()} of {count} pieces were done"


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_every_piece_is_done_once(workers: int) -> None:
    work, done = Queue(), Done()
    with running(work, workers):
        for burst in range(100):
            work.post(*(done.piece((burst, i)) for i in range(burst % 7)))
        done.wait_for(sum(burst % 7 for burst in range(100)))
    assert set(done.seen.values()) == {1}


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_as_many_pieces_as_workers_run_at_once(workers: int) -> None:
    work, done = Queue(), Done()
    together = threading.Barrier(workers)

    def meet() -> None:
        together.wait(LIMIT_S)  # breaks where the others do not run at the same time
        done.piece("met")()

    with running(work, workers):
        for _ in range(20):
            work.post(*[meet] * workers)
        done.wait_for(20 * workers)


def test_a_defect_in_a_piece_is_logged_and_costs_no_thread(caplog: pytest.LogCaptureFixture) -> None:
    work, done = Queue(), Done()

    def fail() -> None:
        done.piece("failed")()
        raise RuntimeError("a defect of ours")

    with caplog.at_level(logging.ERROR), running(work, 2):
        work.post(*[fail] * 10)
        done.wait_for(10)
        together = threading.Barrier(2)

        def meet() -> None:
            together.wait(LIMIT_S)
            done.piece("met")()

        work.post(meet, meet)
        done.wait_for(12)
    assert done.seen == {"failed": 10, "met": 2}
    assert caplog.text.count("RuntimeError: a defect of ours") == 10


def test_a_thread_that_is_stuck_holds_the_end_up_no_longer_than_it_may() -> None:
    work, done = Queue(), Done()
    release = threading.Event()

    def hold() -> None:
        done.piece("begun")()
        release.wait(LIMIT_S)

    pool = begun(work, 1)
    work.post(hold)
    done.wait_for(1)
    assert pool.stop(patience_s=0.1) is False
    release.set()
    assert pool.stop(LIMIT_S) is True
