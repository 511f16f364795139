"""The daemon's threads: every piece is done once, none waits while a thread sleeps, and no defect thins them out."""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import pytest

from jetsel.daemon.job import Job
from jetsel.daemon.pipeline import Pipeline
from jetsel.daemon.port import Port
from jetsel.daemon.watchdog import Watchdog
from jetsel.daemon.worker_pool import WorkerPool
from tests.waiting import until

LIMIT_S = 60.0  # how long a test waits for what must come; it comes at once

Piece = Callable[[], None]


class Socket:
    """Messages that are pieces of work; each arrival rouses one thread that waits, as a wake does."""

    def __init__(self) -> None:
        self._inbox: deque[list[Piece]] = deque()
        self._arrival = threading.Condition()

    def post(self, *pieces: Piece) -> None:
        """Let these messages come, one after the other."""
        for piece in pieces:
            self.post_together(piece)

    def post_together(self, *pieces: Piece) -> None:
        """Let these messages come as one piece of news."""
        with self._arrival:
            self._inbox.append(list(pieces))
            self._arrival.notify()

    def wake(self) -> None:
        self.post_together()

    def receive(self, timeout_s: float) -> list[Piece] | None:
        with self._arrival:
            came = self._arrival.wait_for(lambda: self._inbox, timeout_s)
            return self._inbox.popleft() or None if came else None


class Carrier:
    """Takes each piece in as a job, and carries a job by doing it."""

    def take_in(self, piece: Piece) -> Piece:
        return piece

    def carry(self, *pieces: Piece) -> None:
        for piece in pieces:
            piece()

    def carry_waiting(self) -> None:
        """Nothing waits for an engine."""


class NoWatchdog:
    longest_sleep_s = LIMIT_S

    def turned(self) -> None:
        """Nobody watches."""


def begun(socket: Socket, workers: int) -> WorkerPool:
    pool = WorkerPool(cast("Port", socket), cast("Pipeline", Carrier()), cast("Watchdog", NoWatchdog()), workers)
    pool._heartbeat_s = LIMIT_S  # so that nothing but news rouses a thread
    pool.start()
    return pool


@contextmanager
def running(socket: Socket, workers: int) -> Iterator[WorkerPool]:
    pool = begun(socket, workers)
    try:
        yield pool
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
    socket, done = Socket(), Done()
    with running(socket, workers):
        for burst in range(100):
            socket.post(*(done.piece((burst, i)) for i in range(burst % 7)))
        done.wait_for(sum(burst % 7 for burst in range(100)))
    assert set(done.seen.values()) == {1}


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_as_many_pieces_as_workers_run_at_once(workers: int) -> None:
    socket, done = Socket(), Done()
    together = threading.Barrier(workers)

    def meet() -> None:
        together.wait(LIMIT_S)  # breaks where the others do not run at the same time
        done.piece("met")()

    with running(socket, workers):
        for times in range(1, 21):
            socket.post(*[meet] * workers)
            done.wait_for(times * workers)


def test_what_came_together_is_shared_out_and_no_more_run_at_once_than_may() -> None:
    socket, done = Socket(), Done()
    running_now, most = Counter[str](), Counter[str]()
    together = threading.Barrier(3)

    def work() -> None:
        running_now["now"] += 1
        most["seen"] = max(most["seen"], running_now["now"])
        together.wait(LIMIT_S)
        running_now["now"] -= 1
        done.piece("met")()

    with running(socket, 3):
        socket.post_together(*[work] * 12)
        done.wait_for(12)
    assert most["seen"] == 3


def test_what_is_put_in_front_comes_before_all_that_wait() -> None:
    socket, done = Socket(), Done()
    begun_first, release = threading.Event(), threading.Event()
    order: list[str] = []

    def hold() -> None:
        begun_first.set()
        release.wait(LIMIT_S)

    def named(name: str) -> Piece:
        def do() -> None:
            order.append(name)
            done.piece(name)()

        return do

    with running(socket, 1) as pool:
        socket.post(hold)
        assert begun_first.wait(LIMIT_S)
        socket.post(named("first"), named("second"))
        until(lambda: pool.waiting == 2)
        pool.put_in_front(cast("Job", named("probe")))
        release.set()
        done.wait_for(3)
    assert order == ["probe", "first", "second"]


def test_a_defect_in_a_piece_is_logged_and_costs_no_thread(caplog: pytest.LogCaptureFixture) -> None:
    socket, done = Socket(), Done()

    def fail() -> None:
        done.piece("failed")()
        raise RuntimeError("a defect of ours")

    with caplog.at_level(logging.ERROR), running(socket, 2) as pool:
        for times in range(1, 11):
            socket.post(fail)
            done.wait_for(times)
        assert all(thread.is_alive() for thread in pool._threads)
        socket.post(done.piece("done"))
        done.wait_for(11)
    assert done.seen == {"failed": 10, "done": 1}
    assert caplog.text.count("RuntimeError: a defect of ours") == 10


def test_a_thread_that_is_stuck_holds_the_end_up_no_longer_than_it_may() -> None:
    socket, done = Socket(), Done()
    release = threading.Event()

    def hold() -> None:
        done.piece("begun")()
        release.wait(LIMIT_S)

    pool = begun(socket, 1)
    socket.post(hold)
    done.wait_for(1)
    assert pool.stop(patience_s=0.1) is False
    release.set()
    assert pool.stop(LIMIT_S) is True
