"""The daemon's threads: each waits at the socket, and carries what it reads to the reply.

There is one more thread than may compute at a time, so the socket is read, and a full queue answered, while all of the
others compute. While requests follow one another without a break, one at a time, one thread does all and the others
stand by: Linux wakes one more of those that wait at the socket for each piece in which a peer writes its message.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque

from jetsel.base.events import event
from jetsel.daemon.job import Job
from jetsel.daemon.pipeline import Pipeline
from jetsel.daemon.port import Message, Port
from jetsel.daemon.watchdog import Watchdog

log = logging.getLogger("jetsel.daemon")

HEARTBEAT_S = 1.0  # no thread waits longer, whatever happens
MOST_JOBS = 4  # that a thread takes at once
MOST_READS = 64  # between two jobs of a thread: who floods the socket does not keep it from its work
ALONE = 32  # pieces of work, one after the other, before the other threads stand by
MOMENT_S = 0.01  # a thread stands by no longer, unless others have done a piece of work meanwhile
PAUSE_S = 0.01  # after a defect, so that one that lasts does not take a core


class WorkerPool:
    """`workers` threads that compute, and one more; and the jobs that wait for them."""

    def __init__(self, port: Port, pipeline: Pipeline, watchdog: Watchdog, workers: int) -> None:
        self._port = port
        self._pipeline = pipeline
        self._watchdog = watchdog
        self._workers = workers
        self._heartbeat_s = min(HEARTBEAT_S, watchdog.longest_sleep_s or HEARTBEAT_S)
        self._jobs: deque[Job] = deque()
        pipeline.begin_later = self._jobs.append  # by a worker, which looks for jobs when it has done its own
        self._lock = threading.Lock()
        self._working = 0
        self._standing_by = 0
        self._called = threading.Semaphore(0)  # one of those that stand by
        self._turns = 0  # of threads that have done what they took
        self._alone = 0  # how many pieces of work in a row were begun while no other was under way or waiting
        self._stopping = False
        self._threads = [
            threading.Thread(target=self._serve, name=f"worker-{i}", daemon=True) for i in range(workers + 1)
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def stop(self, patience_s: float) -> bool:
        """Let every thread finish the job it has, and wait for them; return whether each has ended in that time."""
        give_up_s = time.monotonic() + patience_s
        self._stopping = True
        self._port.wake()
        for thread in self._threads:
            thread.join(max(0.0, give_up_s - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    @property
    def waiting(self) -> int:
        """How many jobs nobody has begun."""
        return len(self._jobs)

    def wake(self) -> None:
        """Have what came back from elsewhere, or reached its time, carried on at once, even if all stand by."""
        self._port.wake()
        if self._standing_by:
            self._called.release()

    def put_in_front(self, job: Job) -> None:
        """Have a job begun before all that wait."""
        self._jobs.appendleft(job)
        self._port.wake()

    def _serve(self) -> None:
        jobs: list[Job] = []
        while not self._stopping:
            try:
                self._watchdog.turned()
                if jobs:
                    self._pipeline.carry(*jobs)
                    self._drain_socket()
                else:
                    self._take_in_news()
            except Exception:  # a defect of ours, or no memory: the thread must live to do the next
                log.exception("a worker failed because of a defect and continues", extra=event("worker-failed"))
                time.sleep(PAUSE_S)
            jobs = self._next(has_worked=bool(jobs))
        self._port.wake()  # one call ends one wait: each that leaves passes it on

    def _take_in_news(self) -> None:
        """Wait for news of the socket, and take in what it brings."""
        if self._stood_by():
            self._pipeline.carry_waiting()
            return
        most = MOST_JOBS + 1 if self._working else 1  # while others compute, all that has come is taken along
        messages = self._port.receive(0.0) if self._alone >= ALONE else None
        if messages:
            self._alone -= ALONE // 2  # it came while this thread was at work: perhaps there is work for another
        elif messages is None:
            messages = self._port.receive(self._heartbeat_s, most)
        if not messages:
            self._pipeline.carry_waiting()
            return
        self._take_in(messages)

    def _take_in(self, messages: list[Message]) -> None:
        for message in messages:
            self._jobs.extend(self._pipeline.take_in(message))

    def _drain_socket(self) -> None:
        """Take in all that has come while this thread worked, if others wait already.

        What stays in the socket has no time of arrival, fills no queue and is refused by nobody: under overload it
        would wait there far beyond every deadline.
        """
        for _ in range(MOST_READS if self._jobs else 0):
            messages = self._port.receive(0.0, MOST_JOBS)
            if messages is None:
                return
            self._take_in(messages)
            if not messages:
                self._pipeline.carry_waiting()  # the call that ended this wait may have been about that

    def _stood_by(self) -> bool:
        """Stand by for a moment if this thread is not needed at the socket; return whether it still is not.

        It is not while as many threads compute as may, since it would only take their cores; nor while requests come
        one at a time and another thread does them. It is if nobody has done a piece of work for a moment.
        """
        with self._lock:
            turns, is_last = self._turns, self._standing_by == len(self._threads) - 1
            if self._working < self._workers and (self._alone < ALONE or is_last):
                return False
            self._standing_by += 1
        is_called = self._called.acquire(timeout=MOMENT_S)
        with self._lock:
            self._standing_by -= 1
            if is_called or self._turns != turns:
                return True
            self._alone = 0
            return False

    def _next(self, *, has_worked: bool) -> list[Job]:
        """Return the next jobs for this thread; none if none wait, or as many threads compute as may.

        Mostly one; if many wait, this thread's share of them.
        """
        with self._lock:
            self._working -= has_worked
            self._turns += has_worked
            if not self._jobs or self._working >= self._workers:
                return []
            waiting, others = len(self._jobs), self._working
            self._working += 1
            share = 1 if waiting == 1 else share_of(waiting, self._workers - others)
            jobs = [self._jobs.popleft() for _ in range(share)]
            self._alone = 0 if others or self._jobs else min(self._alone + 1, 2 * ALONE)
            if self._jobs and self._working < self._workers:  # one more thread takes the next
                call = self._called.release if self._standing_by else self._port.wake
                call()
            return jobs


def share_of(waiting: int, free: int) -> int:
    """Return how many of those that wait one of the free threads takes: together they cost less, and delay nobody more.

    One is left for the next thread that comes round.
    """
    return max(1, min(waiting // free, waiting - 1, MOST_JOBS))
