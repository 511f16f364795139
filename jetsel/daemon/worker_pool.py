"""The daemon's threads: each waits at the socket, and carries what it reads to the reply.

There is one more thread than may compute at a time, so the socket is read, and a full queue answered, while all of the
others compute.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque

from jetsel.daemon.job import Job
from jetsel.daemon.pipeline import Pipeline
from jetsel.daemon.port import Port
from jetsel.daemon.watchdog import Watchdog
from jetsel.events import event

log = logging.getLogger("jetsel.daemon")

HEARTBEAT_S = 1.0  # no thread waits longer, whatever happens
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
        self._lock = threading.Lock()
        self._working = 0
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

    def put_in_front(self, job: Job) -> None:
        """Have a job begun before all that wait."""
        self._jobs.appendleft(job)
        self._port.wake()

    def _serve(self) -> None:
        job = None
        while not self._stopping:
            try:
                self._watchdog.turned()
                if job is None:
                    self._take_in_news()
                else:
                    self._pipeline.carry(job)
            except Exception:  # a defect of ours, or no memory: the thread must live to do the next
                log.exception("a worker met a defect and goes on", extra=event("worker-failed"))
                time.sleep(PAUSE_S)
            job = self._next(has_worked=job is not None)
        self._port.wake()  # one call ends one wait: each that leaves passes it on

    def _take_in_news(self) -> None:
        """Wait for news of the socket, and take in what it brings."""
        messages = self._port.receive(self._heartbeat_s)
        if messages is None:
            self._pipeline.carry_waiting()
            return
        for message in messages:
            job = self._pipeline.take_in(message)
            if job is not None:
                self._jobs.append(job)

    def _next(self, *, has_worked: bool) -> Job | None:
        """Return the next job for this thread; None where none waits, or as many compute as may."""
        with self._lock:
            self._working -= has_worked
            if not self._jobs or self._working >= self._workers:
                return None
            self._working += 1
            job = self._jobs.popleft()
            if self._jobs and self._working < self._workers:
                self._port.wake()  # the thread that wakes takes the next
            return job
