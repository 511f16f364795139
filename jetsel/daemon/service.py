"""Admission and the request loop: messages off the socket, work for the crew, replies back."""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable

from jetsel.config import Config
from jetsel.daemon import pipeline
from jetsel.daemon.changes import changes, for_next_start
from jetsel.daemon.generation import Generation, build
from jetsel.daemon.job import Job
from jetsel.daemon.metering.metering import Metering
from jetsel.daemon.port import Message, Port, Route
from jetsel.daemon.status import status
from jetsel.daemon.tally import Tally
from jetsel.daemon.trust import Trust
from jetsel.engines import Backends
from jetsel.errors import (
    BadRequestError,
    InternalError,
    JetselError,
    LoadingError,
    ReloadFailedError,
    ShuttingDownError,
)
from jetsel.power.finding import check as check_power
from jetsel.selection import Batch, Driver, Flight
from jetsel.wire import (
    PROTOCOL_VERSION,
    Classify,
    Reload,
    Reloaded,
    Reply,
    Status,
    StatusReply,
    decode_request,
    encode,
    failure,
    read_id,
)

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
        self._config = self._started = config
        self._metering = metering
        self._backends = backends
        self._port = port
        self._reread = reread
        self._trust = Trust(config.server.admin_group)
        self._tally = Tally(config.server, generation.workers)
        self._generation = generation
        self._generations: tuple[Generation, ...] = (
            generation,
        )  # those before are kept until their last request is answered
        self._jobs: deque[Job] = deque()
        self._flying: dict[Flight, Job] = {}
        self._reloading = threading.Lock()
        self._stopping = False

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
            self._accept(message)
        return len(messages)

    def next_piece(self) -> Callable[[], None] | None:
        """The next thing to compute: models that photographs wait for before photographs that wait to be decoded.

        Where many wait to be decoded, models wait for a whole batch: that costs less than as many single runs, and
        delays nobody, since the queue behind is longer.
        """
        for generation in self._generations:
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
            family.driver.is_waited_for for generation in self._generations for family in generation.families.values()
        )

    # What the lifecycle calls.

    def refuse_new(self) -> None:
        """From now on only what was admitted is answered."""
        self._stopping = True

    def give_up(self) -> None:
        """Once nobody works any more: tell those who are not answered yet to ask again."""
        for job in [*self._flying.values(), *self._jobs]:
            self._finish(job, ShuttingDownError("the daemon has stopped: send again when it is back"))

    @property
    def is_drained(self) -> bool:
        """Whether every message that came has been answered, as far as can be seen now."""
        return self._tally.in_queue == 0 and self._port.is_quiet

    # Messages.

    def _accept(self, message: Message) -> None:
        """Answer a message at once or queue its work."""
        frame = bytes(message.frames[0]) if message.frames else b""
        try:
            if len(message.frames) > 2:
                raise BadRequestError(f"{len(message.frames)} frames: send the JSON, then the image, nothing else")
            request = decode_request(frame)
            if isinstance(request, Classify):
                self._admit(message, request)
                return
            if len(message.frames) == 2:
                raise BadRequestError("only classify takes a second frame: send this one without")
            if isinstance(request, Status):
                self._reply(message.route, self._told(request.id))
            else:
                self._trust.check(message.credentials)
                threading.Thread(target=self._reload, args=(message.route, request), name="reload", daemon=True).start()
        except JetselError as error:
            self._tally.refused(error.code)
            self._reply(message.route, failure(read_id(frame), error))
        except Exception:  # the net at the door: whatever one message breaks, the next is read
            log.exception("a message could not be read for a defect of jetsel's")
            internal = InternalError("jetsel failed on this message: its log has the reason")
            self._tally.refused(internal.code)
            self._reply(message.route, failure(read_id(frame), internal))

    def _admit(self, message: Message, request: Classify) -> None:
        received_s = time.monotonic()
        if len(message.frames) < 2:
            raise BadRequestError("the image is missing: send it as the frame after the JSON")
        if self._stopping:
            raise ShuttingDownError("the daemon is stopping: send again when it is back")
        if not self._generation.ready:
            progress = f" ({self._generation.progress})" if self._generation.progress else ""
            raise LoadingError(f"the models are still loading{progress}: send again in a moment")
        generation = self._enter()
        try:
            family = generation.family(request.family)
            policy = self._metering.within_budget(family, family.policy_for(request), request)
            floor_ms = family.driver.floor_ms(policy) if request.deadline_ms is not None else 0.0
            self._tally.admit(message.frames[1].nbytes, request.deadline_ms, floor_ms)
        except JetselError:
            generation.leave()
            raise
        self._jobs.append(
            Job(
                route=message.route,
                request=request,
                data=message.frames[1],
                generation=generation,
                family=family,
                policy=policy,
                fallback=family.fallback if (request.on_doubt or family.on_doubt) == "use" else None,
                bill=self._metering.open(),
                received_s=received_s,
                deadline_s=None if request.deadline_ms is None else received_s + request.deadline_ms / 1e3,
            )
        )

    def _enter(self) -> Generation:
        """Return the generation that serves now, with this request counted in."""
        while not (generation := self._generation).enter():
            pass  # a reload replaced it between the two: its successor stands already
        return generation

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
        self._tally.release(job.data.nbytes, outcome, work_ms)
        self._metering.close(job.bill, job.family.name, job.policy.name if outcome == "ok" else None, job.request)
        job.generation.leave()
        if job.flight is not None:
            self._flying.pop(job.flight, None)
        if self._config.log.requests:
            log.info("request %s: %s", job.request.id, outcome)
        self._reply(job.route, reply)

    def _reply(self, route: Route, reply: Reply) -> None:
        self._port.send(route, encode(reply))

    # Status and reload.

    def _told(self, request_id: str) -> StatusReply:
        state = "stopping" if self._stopping else "ready" if self._generation.ready else "loading"
        return status(request_id, state, self._generation, self._tally, self._port, self._metering)

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
        with self._reloading:
            before = self._generation
            try:
                config = self._reread()
                check_power(config.power)
                following = build(config, before)
                following.limits, following.workers = before.limits, before.workers  # of [server]: at the next start
            except JetselError as error:
                raise ReloadFailedError(f"the running configuration stays: {error}") from None
            try:
                following.load(self._backends, before)
            except JetselError as error:
                following.close(before)
                raise ReloadFailedError(f"the running configuration stays: {error}") from None
            for section in for_next_start(self._started, config):
                log.warning("changes under [%s] take effect at the next start", section)
            self._metering.serve(following.families, config.power)
            self._config = config
            self._generations = (following, before)
            self._generation = following
            changed = changes(before, following)
            log.info("reloaded: %s", ", ".join(changed) or "nothing changed")
            before.retire()
            self._generations = (following,)
            before.close(following)
            return changed
