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
from jetsel.daemon.generation import Generation
from jetsel.daemon.job import Job
from jetsel.daemon.metering.metering import Metering
from jetsel.daemon.port import Port, Route
from jetsel.daemon.serving import Serving
from jetsel.daemon.status import status
from jetsel.daemon.tally import Tally
from jetsel.daemon.trust import Trust
from jetsel.engines import Backends
from jetsel.errors import InternalError, JetselError, ShuttingDownError
from jetsel.selection import Batch, Driver, Flight
from jetsel.wire import PROTOCOL_VERSION, Reload, Reloaded, Reply, StatusReply, encode, failure

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
    ) -> None:
        self._metering = metering
        self._port = port
        self._tally = Tally()
        self._admission = Admission(config.server, generation.workers)
        self._serving = Serving(config, generation, backends, metering, reread)
        trust = Trust(config.server.admin_group)
        self._door = Door(
            self._serving, self._admission, self._tally, metering, trust, self._reply, self._told, self._begin_reload
        )
        self._jobs: deque[Job] = deque()
        self._flying: dict[Flight, Job] = {}

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
        for message in messages:
            job = self._door.accept(message)
            if job is not None:
                self._jobs.append(job)
        return len(messages)

    def next_piece(self) -> Callable[[], None] | None:
        """The next thing to compute: models that photographs wait for before photographs that wait to be decoded.

        Where many wait to be decoded, models wait for a whole batch: that costs less than as many single runs, and
        delays nobody, since the queue behind is longer.
        """
        for generation in self._serving.standing:
            for family in generation.families.values():
                batch = self._take(family.driver)
                if batch is not None:
                    return functools.partial(self._infer, family.driver, batch)
        return functools.partial(self._prepare, self._jobs.popleft()) if self._jobs else None

    def _take(self, driver: Driver) -> Batch | None:
        return driver.take(patient=len(self._jobs) >= driver.max_batch)

    def has_more(self) -> bool:
        """Whether another piece may be there."""
        return bool(self._jobs) or any(
            family.driver.is_waited_for
            for generation in self._serving.standing
            for family in generation.families.values()
        )

    # What the lifecycle calls.

    def refuse_new(self) -> None:
        """From now on only what was admitted is answered."""
        self._door.is_closed = True

    def give_up(self) -> None:
        """Once nobody works any more: tell those who are not answered yet to ask again."""
        for job in [*self._flying.values(), *self._jobs]:
            self._finish(job, ShuttingDownError("the daemon has stopped: send again when it is back"))

    @property
    def is_drained(self) -> bool:
        """Whether every message that came has been answered, as far as can be seen now."""
        return self._admission.in_queue == 0 and self._port.is_quiet

    # Work.

    def _prepare(self, job: Job) -> None:
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
        try:
            for flight in driver.execute(batch):
                self._finish(self._flying[flight], None)
        except Exception as error:  # the net again: a defect of ours fails the batch, and each of it is told
            for flight in batch.flights:
                if flight in self._flying:
                    self._finish(self._flying[flight], error)

    def _finish(self, job: Job, error: Exception | None) -> None:
        reply: Reply
        outcome, work_ms = "ok", None
        try:
            if error is not None:
                raise error
            answer = pipeline.answer(job, self._metering)
            work_ms = answer.stages_ms.total - answer.stages_ms.queue
            reply = answer
        except JetselError as refused:
            outcome, reply = refused.code, failure(job.request.id, refused)
        except Exception:
            log.exception("request %s failed", job.request.id)
            internal = InternalError(f"jetsel failed on this request: its log has the reason under id {job.request.id}")
            outcome, reply = internal.code, failure(job.request.id, internal)
        self._tally.count(outcome)
        self._admission.release(job.data.nbytes, work_ms)
        self._metering.close(job.bill, job.family.name, job.policy.name if outcome == "ok" else None, job.request)
        job.generation.leave()
        if job.flight is not None:
            self._flying.pop(job.flight, None)
        if self._serving.config.log.requests:
            log.info("request %s: %s", job.request.id, outcome)
        self._reply(job.route, reply)

    def _reply(self, route: Route, reply: Reply) -> None:
        self._port.send(route, encode(reply))

    # Status and reload.

    def _told(self, request_id: str) -> StatusReply:
        generation = self._serving.generation
        state = "stopping" if self._door.is_closed else "ready" if generation.ready else "loading"
        return status(request_id, state, generation, self._tally, self._admission, self._port, self._metering)

    def _begin_reload(self, route: Route, request: Reload) -> None:
        threading.Thread(target=self._reload, args=(route, request), name="reload", daemon=True).start()

    def _reload(self, route: Route, request: Reload) -> None:
        try:
            changed = self.reload()
        except JetselError as error:
            log.error("reload refused, nothing changed: %s", error)
            self._reply(route, failure(request.id, error))
        else:
            self._reply(route, Reloaded(PROTOCOL_VERSION, request.id, changed))
        self._port.wake()  # this thread is none of the crew's, and does not read what the sending may have hidden

    def reload(self) -> list[str]:
        """Read everything again and serve it from the next request on; raises ReloadFailedError and changes nothing."""
        return self._serving.reload()
