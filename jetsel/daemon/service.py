"""The request loop: messages off the socket, work for the crew, replies back."""

from __future__ import annotations

import functools
import logging
import threading
from collections import deque
from collections.abc import Callable

from jetsel.config import Config
from jetsel.daemon import pipeline
from jetsel.daemon.admission import Admission
from jetsel.daemon.door import Door
from jetsel.daemon.generation import Generation, Hear
from jetsel.daemon.job import Job
from jetsel.daemon.message import Route
from jetsel.daemon.metering.metering import Metering
from jetsel.daemon.notify import Notifier
from jetsel.daemon.port import Port
from jetsel.daemon.probe import Probe
from jetsel.daemon.reloading import Reloader
from jetsel.daemon.request_log import log_reply
from jetsel.daemon.serving import Serving
from jetsel.daemon.shortage import out_of_memory
from jetsel.daemon.status import queue_status, status
from jetsel.daemon.tally import Tally
from jetsel.daemon.trust import Trust
from jetsel.daemon.watchdog import Watchdog
from jetsel.engines import Backends
from jetsel.errors import InternalError, JetselError, LoadingError, ReloadFailedError, ShuttingDownError
from jetsel.events import event, run_about
from jetsel.runtime import Batch, Driver, Flight
from jetsel.wire import Answer, Failure, Reload, Reply, StatusReply, encode, failure

log = logging.getLogger("jetsel.daemon")

MOST_PER_TURN = 64  # messages taken off the socket before the work they made is begun


class Service:
    """The daemon between its socket and its crew. Implements crew.Work."""

    def __init__(
        self,
        config: Config,
        generation: Generation,
        port: Port,
        backends: Backends,
        metering: Metering,
        reread: Callable[[], Config],
        notifier: Notifier,
    ) -> None:
        self._metering = metering
        self._port = port
        self._backends = backends
        self._tally = Tally()
        self._admission = Admission(config.server, generation.workers)
        self._stopping = threading.Event()
        self._serving = Serving(config, generation, backends, metering, reread, self._stopping, hearing(notifier))
        self._reloader = Reloader(self._reload, self._reply, port.wake, notifier)
        self._probe = Probe(self._serving, backends)
        self._watchdog = Watchdog(notifier.watchdog_s, notifier.watchdog, self._probe, backends.asking)
        if self._watchdog.longest_sleep_s is not None:
            port.heartbeat_ms = min(port.heartbeat_ms, self._watchdog.longest_sleep_s * 1e3)
        trust = Trust(config.server.admin_group)
        self._door = Door(
            self._serving, self._admission, self._tally, metering, trust, self._reply, self._told, self._begin_reload
        )
        self._jobs: deque[Job] = deque()
        self._flying: dict[Flight, Job] = {}
        self._lost_replies = 0
        self._in_hand: set[Job] = set()  # what was taken in and is not answered

    # What the crew calls.

    def waiter(self) -> Callable[[], None]:
        """Return what one thread calls to sleep until the socket may have something, or `wake` is called."""
        return self._port.waiter()

    def wake(self) -> None:
        """Rouse one thread that sleeps, or the next that would."""
        self._port.wake()

    def receive(self) -> int:
        """Take what has come off the socket, answer what needs no work, queue the rest; return how many that was."""
        messages = self._port.receive(MOST_PER_TURN)
        self._warn_of_lost_replies()
        for message in messages:
            job = self._door.accept(message)
            if job is not None:
                self._in_hand.add(job)
                self._jobs.append(job)
        return len(messages)

    def _warn_of_lost_replies(self) -> None:
        lost = self._port.lost_replies
        if lost > self._lost_replies:
            told = event("replies-lost", count=lost - self._lost_replies)
            self._lost_replies = lost
            log.warning("replies are lost: who asked is gone, or does not read", extra=told)

    def next_piece(self) -> Callable[[], None] | None:
        """The next thing to compute: models that photographs wait for before photographs that wait to be decoded.

        Where many wait to be decoded, models wait for a whole batch: that costs less than as many single runs, and
        delays nobody, since the queue behind is longer. The daemon's own request comes before either.
        """
        probe = self._probe.take()
        if probe is not None:
            self._in_hand.add(probe)
            return functools.partial(self._prepare, probe)
        for generation in self._serving.standing:
            for family in generation.families.values():
                batch = self._take(family.driver)
                if batch is not None:
                    return functools.partial(self._infer, family.driver, batch)
        if not self._jobs:
            return None
        piece = functools.partial(self._prepare, self._jobs[0])
        self._jobs.popleft()  # what may fail for want of memory is done: no request is lost between queue and crew
        return piece

    def _take(self, driver: Driver) -> Batch | None:
        return driver.take(patient=len(self._jobs) >= driver.max_batch)

    def has_more(self) -> bool:
        """Whether another piece may be there."""
        return bool(self._jobs or self._probe.is_waiting) or any(
            family.driver.is_waited_for
            for generation in self._serving.standing
            for family in generation.families.values()
        )

    def turned(self) -> None:
        """The calling thread of the crew has come round."""
        self._watchdog.turned()

    def left(self) -> None:
        """The calling thread of the crew comes round no more."""
        self._watchdog.left()

    # What the lifecycle calls.

    def begin_feeding(self) -> None:
        """Feed the watchdog from now on, if there is one."""
        self._watchdog.start()

    def refuse_new(self) -> int:
        """From now on only what was admitted is answered, and no reload begins; return how much of that is left."""
        self._door.is_closed = True
        self._stopping.set()
        self._reloader.close()
        return self._admission.in_queue

    def give_up(self) -> int:
        """Tell who is not answered yet to ask again, and return how many they are; whoever works on it says no more."""
        jobs = [job for job in self._in_hand.copy() if not job.is_probe]
        for job in jobs:
            self._finish(job, ShuttingDownError("the daemon has stopped: send again when it is back"))
        return len(jobs)

    def end(self, patience_s: float) -> bool:
        """Once the crew has stopped: end the reload that is under way; return whether it has ended."""
        return self._reloader.give_up(patience_s)

    @property
    def is_drained(self) -> bool:
        """Whether every message that came has been answered, as far as can be seen now."""
        return self._admission.in_queue == 0 and self._port.is_quiet

    # Work.

    def _prepare(self, job: Job) -> None:
        try:
            run_about((job.request.id,), self._begin, job)
        except Exception as error:  # what the nets below are in want of memory for themselves
            self._finish(job, error)

    def _begin(self, job: Job) -> None:
        try:
            flight = pipeline.prepare(job)
            self._flying[flight] = job  # before it begins: another thread may land it at once
            ended = job.family.driver.begin(flight)
        except Exception as error:  # the request loop's net: whatever one photograph breaks, the next is served
            self._finish(job, error)
            return
        if ended:
            self._finish(job, None)
            return
        batch = self._take(job.family.driver)  # its own run, mostly, while its input is warm in this core's cache
        if batch is not None:
            self._infer(job.family.driver, batch)

    def _infer(self, driver: Driver, batch: Batch) -> None:
        run_about(lambda: self._ids(batch), self._execute, driver, batch)

    def _ids(self, batch: Batch) -> tuple[str, ...]:
        jobs = [self._flying.get(flight) for flight in batch.flights]
        return tuple(job.request.id for job in jobs if job is not None)

    def _execute(self, driver: Driver, batch: Batch) -> None:
        try:
            for flight in driver.execute(batch):
                self._land(flight, None)
        except Exception as error:  # the net again: a defect of ours fails the batch, and each of it is told
            for flight in batch.flights:
                self._land(flight, error)

    def _land(self, flight: Flight, error: Exception | None) -> None:
        job = self._flying.get(flight)  # None: the end of the daemon has answered it
        if job is not None:
            self._finish(job, error)

    def _finish(self, job: Job, error: Exception | None) -> None:
        try:
            self._in_hand.remove(job)
        except KeyError:
            return  # the end of the daemon has answered it
        reply: Answer | Failure
        outcome, work_ms = "ok", None
        try:
            if error is not None:
                raise error
            answer = pipeline.answer(job, self._metering)
            work_ms = answer.stages_ms.total - answer.stages_ms.queue
            reply = answer
        except JetselError as refused:
            outcome, reply = refused.code, failure(job.request.id, refused)
        except Exception as unexpected:
            told: JetselError | None = out_of_memory(unexpected)
            if told is None:
                failed = event("request-failed", request_id=job.request.id)
                log.exception("a request failed for a defect of jetsel's", extra=failed)
                told = InternalError(f"jetsel failed on this request: its log has the reason under id {job.request.id}")
            else:
                log.error("%s", told, extra=event("no-memory", request_id=job.request.id, code=told.code))
            outcome, reply = told.code, failure(job.request.id, told)
        job.generation.leave()
        if job.flight is not None:
            self._flying.pop(job.flight, None)
        if job.is_probe:
            self._probe.over(outcome)
            return
        self._tally.ended(reply)
        self._admission.release(job.load, work_ms)
        self._metering.close(job.bill, job.family.name, job.policy.name if outcome == "ok" else None, job.request)
        if self._serving.config.log.requests:
            log_reply(job, reply)
        self._reply(job.route, reply)

    def _reply(self, route: Route, reply: Reply) -> None:
        self._port.send(route, encode(reply))

    # Status and reload.

    def _told(self, request_id: str) -> StatusReply:
        generation = self._serving.generation
        state = "stopping" if self._door.is_closed else "ready" if generation.ready else "loading"
        queue = queue_status(self._admission, len(self._jobs), generation.workers)
        return status(request_id, state, generation, self._tally, queue, self._port, self._metering, self._backends)

    def _begin_reload(self, route: Route, request: Reload) -> None:
        if not self._serving.generation.ready:
            raise LoadingError("the models are still loading: reload when they are there")
        self._reloader.ask((route, request))

    def reload(self) -> None:
        """Have everything read again, and served from the next request on; for a signal, which nobody answers."""
        self._reloader.ask()

    def _reload(self) -> list[str]:
        with self._tally.reload() as changed:
            changed += self._port.reload_keys()  # first: who is revoked is out, even where a model's file is wrong
            try:
                changed += self._serving.reload()
            except ReloadFailedError as error:
                if not changed:
                    raise
                raise ReloadFailedError(
                    f"{error}; but of the keys, which are read first: {', '.join(changed)}"
                ) from None
        return changed


def hearing(notifier: Notifier) -> Hear:
    """Return what tells the service manager how far loading is: it waits no longer than until the next word is due."""
    return lambda progress, patience_s: notifier.extend_timeout(patience_s, progress)
