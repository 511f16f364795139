"""The daemon's threads: every piece is done once, none waits while a thread sleeps, and no defect thins them out."""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

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
        self.turns: Counter[str] = Counter()
        self.gone: list[str] = []

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

    def receive(self) -> int:
        with self._arrival:
            taken = len(self._inbox)
            self._pieces.extend(self._inbox)
            self._inbox.clear()
            return taken

    def next_piece(self) -> Piece | None:
        return self._pieces.popleft() if self._pieces else None

    def has_more(self) -> bool:
        return bool(self._pieces)

    def turned(self) -> None:
        with self._arrival:
            self.turns[threading.current_thread().name] += 1

    def left(self) -> None:
        with self._arrival:
            self.gone.append(threading.current_thread().name)


@contextmanager
def running(work: Queue, workers: int) -> Iterator[WorkerPool]:
    pool = WorkerPool(work, workers)
    pool.start()
    try:
        yield pool
    finally:
        pool.stop()


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


def test_every_thread_says_when_it_comes_round_and_when_it_goes() -> None:
    work, done = Queue(), Done()
    with running(work, 2):
        for number in range(50):
            work.post(done.piece(number))
            done.wait_for(number + 1)
        assert sum(work.turns.values()) >= 50, "once for each piece, at least"
        assert work.gone == []
    assert sorted(work.gone) == ["worker-0", "worker-1", "worker-2"]
    assert set(work.turns) == set(work.gone)


def test_a_thread_that_is_stuck_says_nothing_and_holds_the_end_up_no_longer_than_it_may() -> None:
    work, done = Queue(), Done()
    release = threading.Event()

    def hold() -> None:
        done.piece("begun")()
        release.wait(LIMIT_S)

    pool = WorkerPool(work, 1)
    pool.start()
    work.post(hold)
    done.wait_for(1)
    assert pool.stop(patience_s=0.1) is False
    assert len(work.gone) == 1, "the one that is not stuck"
    release.set()
    assert pool.stop() is True
    assert len(work.gone) == 2


class Short(Queue):
    """A queue whose threads find no memory at one place of their turn, some times; then there is enough."""

    def __init__(self, place: str, times: int = 5) -> None:
        super().__init__()
        self.left_over = times
        whole = getattr(self, place)

        def short() -> object:
            made = whole() if place == "receive" else None  # what was taken off the socket is not lost
            with self._arrival:
                lacks, self.left_over = self.left_over > 0, max(0, self.left_over - 1)
            if lacks:
                raise MemoryError
            return made if place == "receive" else whole()

        setattr(self, place, short)


@pytest.mark.parametrize("place", ["turned", "next_piece", "has_more", "wait", "receive"])
def test_want_of_memory_at_any_place_of_a_turn_costs_no_thread_and_no_piece(place: str) -> None:
    work, done = Short(place), Done()
    together = threading.Barrier(2)

    def meet() -> None:
        together.wait(LIMIT_S)
        done.piece("met")()

    with running(work, 2):
        for number in range(100):
            work.post(done.piece(number), done.piece(number))
            done.wait_for(2 * number + 2)
        if place != "has_more":  # asked only where another thread happens to sleep
            assert work.left_over == 0
        work.post(meet, meet)
        done.wait_for(202)
        assert work.gone == []
    assert sorted(work.gone) == ["worker-0", "worker-1", "worker-2"]
