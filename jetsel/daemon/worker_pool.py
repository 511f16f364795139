"""The daemon's worker threads: each waits at the socket, and processes what it reads, up to the reply.

There is one more thread than may compute at a time, so that one reads the socket and refuses requests while all others
compute. If requests come one at a time without a break, one thread does all the work. The others stand by: they sleep
away from the socket, because Linux would wake another thread there for each piece of a message.
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

HEARTBEAT_S = 1.0  # longest wait of a thread
MOST_JOBS = 4  # most jobs that a thread takes at once
MOST_READS = 64  # reads of the socket between two jobs of a thread, so that a flood of messages does not stop its work
LONE_JOBS = 32  # after this many lone jobs in a row (no other job ran or waited), the other threads stand by
MOMENT_S = 0.01  # longest time that a thread stands by while no other completes a job
PAUSE_S = 0.01  # after a defect, so that a permanent one does not take a core


class WorkerPool:
    """Worker threads and the queue of their jobs. `workers` threads compute at a time; one more reads the socket."""

    def __init__(self, port: Port, pipeline: Pipeline, watchdog: Watchdog, workers: int) -> None:
        self._port = port
        self._pipeline = pipeline
        self._watchdog = watchdog
        self._workers = workers
        self._heartbeat_s = min(HEARTBEAT_S, watchdog.longest_sleep_s or HEARTBEAT_S)
        self._jobs: deque[Job] = deque()
        pipeline.enqueue = self._jobs.append  # the calling worker looks for jobs right after
        self._lock = threading.Lock()
        self._computing = 0  # number of threads that process jobs
        self._standing_by = 0  # number of threads that sleep away from the socket
        self._woken = threading.Semaphore(0)  # each release wakes one thread that stands by
        self._completed_rounds = 0  # number of completed jobs or batches
        self._lone_jobs = 0  # jobs in a row that began while no other job was under way or waiting
        self._stopping = False
        self._threads = [
            threading.Thread(target=self._serve, name=f"worker-{i}", daemon=True) for i in range(workers + 1)
        ]

    def start(self) -> None:
        """Start the threads, which wait for requests at once."""
        for thread in self._threads:
            thread.start()

    def stop(self, patience_s: float) -> bool:
        """End the threads after their current jobs; return whether all have ended within patience_s."""
        give_up_s = time.monotonic() + patience_s
        self._stopping = True
        self._port.wake()
        for thread in self._threads:
            thread.join(max(0.0, give_up_s - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    @property
    def waiting(self) -> int:
        """Number of jobs that no thread has begun."""
        return len(self._jobs)

    def wake(self) -> None:
        """Wake threads to continue runs after a result or a deadline: one at the port, and one that stands by."""
        self._port.wake()
        if self._standing_by:
            self._woken.release()

    def put_in_front(self, job: Job) -> None:
        """Queue a job in front of all others."""
        self._jobs.appendleft(job)
        self._port.wake()

    def _serve(self) -> None:
        """Process jobs and read the socket in turn until the pool stops. Each thread runs this loop."""
        jobs: list[Job] = []
        while not self._stopping:
            try:
                self._watchdog.note_round()
                if jobs:
                    self._pipeline.process(*jobs)
                    self._drain_socket()
                else:
                    self._wait_for_messages()
            except Exception:  # a defect or a lack of memory: the thread must live for the next job
                log.exception("a worker failed because of a defect and continues", extra=event("worker-failed"))
                time.sleep(PAUSE_S)
            jobs = self._next_jobs(has_worked=bool(jobs))
        self._port.wake()  # one call wakes one thread: each that ends wakes the next

    def _wait_for_messages(self) -> None:
        """Stand by, or wait at the socket and queue the messages' jobs; if none comes, continue runs that wait."""
        if self._stand_by():
            self._pipeline.continue_waiting()
            return
        max_events = MOST_JOBS + 1 if self._computing else 1  # while others compute, take all that has come
        messages = self._port.receive(0.0) if self._lone_jobs >= LONE_JOBS else None  # None: no event; []: no message
        if messages:
            self._lone_jobs -= LONE_JOBS // 2  # one came while this thread worked: perhaps a second is needed
        elif messages is None:
            messages = self._port.receive(self._heartbeat_s, max_events)
        if not messages:
            self._pipeline.continue_waiting()
            return
        self._queue_jobs_of(messages)

    def _queue_jobs_of(self, messages: list[Message]) -> None:
        for message in messages:
            self._jobs.extend(self._pipeline.take_in(message))

    def _drain_socket(self) -> None:
        """If jobs wait already, read all messages that came while this thread computed, and queue their jobs.

        Messages left in the socket have no arrival time and are not refused: under overload they would wait there far
        beyond their deadlines.
        """
        for _ in range(MOST_READS if self._jobs else 0):
            messages = self._port.receive(0.0, MOST_JOBS)
            if messages is None:
                return
            self._queue_jobs_of(messages)
            if not messages:
                self._pipeline.continue_waiting()  # the event may have been `wake`

    def _stand_by(self) -> bool:
        """Sleep for at most MOMENT_S unless the socket needs this thread; return True if it still does not.

        It is not needed while as many threads compute as may, since it would take their cores, nor while another thread
        answers requests that come one at a time. It is needed if no thread has completed a job for MOMENT_S.
        """
        with self._lock:
            completed, is_last = self._completed_rounds, self._standing_by == len(self._threads) - 1
            if self._computing < self._workers and (self._lone_jobs < LONE_JOBS or is_last):
                return False
            self._standing_by += 1
        is_woken = self._woken.acquire(timeout=MOMENT_S)
        with self._lock:
            self._standing_by -= 1
            if is_woken or self._completed_rounds != completed:
                return True
            self._lone_jobs = 0
            return False

    def _next_jobs(self, *, has_worked: bool) -> list[Job]:
        """Return this thread's next jobs: usually one, or a batch if many wait. has_worked: whether it just ended some.

        The list is empty if no job waits, or as many threads compute as may.
        """
        with self._lock:
            self._computing -= has_worked
            self._completed_rounds += has_worked
            if not self._jobs or self._computing >= self._workers:
                return []
            waiting, others = len(self._jobs), self._computing
            self._computing += 1
            share = 1 if waiting == 1 else batch_share(waiting, self._workers - others)
            jobs = [self._jobs.popleft() for _ in range(share)]
            self._lone_jobs = 0 if others or self._jobs else min(self._lone_jobs + 1, 2 * LONE_JOBS)
            if self._jobs and self._computing < self._workers:  # one more thread takes the next job
                wake_one = self._woken.release if self._standing_by else self._port.wake
                wake_one()
            return jobs


def batch_share(waiting: int, free: int) -> int:
    """Return how many of the waiting jobs one of the free threads takes: a batch costs less than single jobs."""
    return max(1, min(waiting // free, waiting - 1, MOST_JOBS))
