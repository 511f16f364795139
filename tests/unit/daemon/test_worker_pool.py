"""The daemon's threads: every piece is done once, none waits while a thread sleeps, and no defect thins them out."""

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import cast

import pytest

from jetsel.daemon.job import Job
from jetsel.daemon.pipeline import Pipeline
from jetsel.daemon.port import Port
from jetsel.daemon.watchdog import Watchdog
from jetsel.daemon.worker_pool import LONE_JOBS, WorkerPool
from tests.waiting import LIMIT_S, until

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

    def receive(self, timeout_s: float, most: int = 1) -> list[Piece] | None:
        with self._arrival:
            if not self._arrival.wait_for(lambda: self._inbox, timeout_s):
                return None
            news = [self._inbox.popleft() for _ in range(min(most, len(self._inbox)))]
            return [piece for pieces in news for piece in pieces]


class Carrier:
    """Takes each piece in as a job, and carries a job by doing it."""

    def take_in(self, piece: Piece) -> list[Piece]:
        return [piece]

    def process(self, *pieces: Piece) -> None:
        for piece in pieces:
            piece()

    def continue_waiting(self) -> None:
        """Nothing waits for an engine."""


class NoWatchdog:
    longest_sleep_s = LIMIT_S

    def note_round(self) -> None:
        """Nobody watches."""


@contextmanager
def running(socket: Socket, workers: int) -> Iterator[WorkerPool]:
    pool = WorkerPool(cast("Port", socket), cast("Pipeline", Carrier()), cast("Watchdog", NoWatchdog()), workers)
    pool._heartbeat_s = LIMIT_S  # so that nothing but news rouses a thread
    pool.start()
    try:
        yield pool
    finally:
        assert pool.stop(LIMIT_S)


def until_done(done: Collection[object], count: int) -> None:
    """Wait for so many pieces, each of which adds its name to `done`."""
    until(lambda: len(done) >= count)


def test_what_came_together_is_shared_out_and_no_more_run_at_once_than_may() -> None:
    socket, done = Socket(), list[object]()
    running_now, most = Counter[str](), Counter[str]()
    together = threading.Barrier(3)

    def work() -> None:
        running_now["now"] += 1
        most["seen"] = max(most["seen"], running_now["now"])
        together.wait(LIMIT_S)
        running_now["now"] -= 1
        done.append("met")

    with running(socket, 3):
        socket.post_together(*[work] * 12)
        until_done(done, 12)
    assert most["seen"] == 3


def test_threads_that_stand_by_while_pieces_come_one_at_a_time_work_again_when_several_do() -> None:
    socket, done = Socket(), list[object]()
    together = threading.Barrier(2)

    def meet() -> None:
        together.wait(LIMIT_S)
        done.append("met")

    with running(socket, 2):
        for times in range(1, 4 * LONE_JOBS):
            socket.post(partial(done.append, times))
            until_done(done, times)
        socket.post(meet, meet)
        until_done(done, 4 * LONE_JOBS + 1)


def test_what_is_put_in_front_comes_before_all_that_wait() -> None:
    socket, done = Socket(), list[object]()
    begun_first, release = threading.Event(), threading.Event()

    def hold() -> None:
        begun_first.set()
        release.wait(LIMIT_S)

    with running(socket, 1) as pool:
        socket.post(hold)
        assert begun_first.wait(LIMIT_S)
        socket.post(partial(done.append, "first"), partial(done.append, "second"))
        until(lambda: pool.waiting == 2)
        pool.put_in_front(cast("Job", partial(done.append, "probe")))
        release.set()
        until_done(done, 3)
    assert done == ["probe", "first", "second"]


def test_a_defect_in_a_piece_is_logged_and_costs_no_thread(caplog: pytest.LogCaptureFixture) -> None:
    socket, done = Socket(), list[object]()

    def fail() -> None:
        done.append("failed")
        raise RuntimeError("a defect of ours")

    with caplog.at_level(logging.ERROR), running(socket, 2) as pool:
        for times in range(1, 11):
            socket.post(fail)
            until_done(done, times)
        assert all(thread.is_alive() for thread in pool._threads)
        socket.post(partial(done.append, "done"))
        until_done(done, 11)
    assert Counter(done) == {"failed": 10, "done": 1}
    assert caplog.text.count("RuntimeError: a defect of ours") == 10
