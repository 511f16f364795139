"""The request loop: messages off the socket, work for the worker pool, replies back."""

from __future__ import annotations

import functools
import threading
from collections import deque
from collections.abc import Callable

from jetsel.config import Config
from jetsel.daemon import pipeline
from jetsel.daemon.admission import Admission
from jetsel.daemon.current import Current
from jetsel.daemon.door import admit
from jetsel.daemon.identity import check_admin, group_number
from jetsel.daemon.job import Job
from jetsel.daemon.message import Message, Route
from jetsel.daemon.metering.metering import Metering
from jetsel.daemon.notify import Notifier
from jetsel.daemon.port import Port
from jetsel.daemon.probe import Probe
from jetsel.daemon.reload import Reload
from jetsel.daemon.reload_requests import ReloadRequests
from jetsel.daemon.request_log import log_refusal, log_reply, unexpected, warn_of_limit
from jetsel.daemon.snapshot import Snapshot
from jetsel.daemon.status import queue_status, status
from jetsel.daemon.tally import Tally
from jetsel.daemon.watchdog import Watchdog
from jetsel.engines import Backends
from jetsel.errors import BadRequestError, JetselError, LoadingError, ShuttingDownError
from jetsel.events import run_about
from jetsel.runtime import Batch, Driver, Flight
from jetsel.wire import (
    MAX_JSON_BYTES,
    Answer,
    Classify,
    Failure,
    Reply,
    Status,
    StatusReply,
    decode_request,
    encode,
    failure,
    read_id,
)

MOST_PER_TURN = 64  # messages taken off the socket before the work they made is begun


class Dispatcher:
    """The daemon between its socket and its workers."""

    def __init__(
        self,
        snapshot: Snapshot,
        port: Port,
        backends: Backends,
        metering: Metering,
        reread: Callable[[], Config],
        notifier: Notifier,
    ) -> None:
        """reread: gives the configuration for a reload."""
        self._metering = metering
        self._port = port
        self._backends = backends
        self._notifier = notifier
        self._tally = Tally()
        self._admission = Admission(snapshot.config.server, snapshot.workers)
        self._stopping = threading.Event()
        self.current = Current(snapshot)
        reload = Reload(self.current, backends, metering, reread, self._stopping, notifier.progress)
        self._reloads = ReloadRequests(reload, self._reply, notifier, self._tally)
        self._probe = Probe(self.current, backends, self._put_in_front)
        self._watchdog = Watchdog(notifier.watchdog_s, notifier.watchdog, self._probe.ask, backends.asking)
        if self._watchdog.longest_sleep_s is not None:
            port.heartbeat_ms = min(port.heartbeat_ms, self._watchdog.longest_sleep_s * 1e3)
        self._admin_group = snapshot.config.server.admin_group
        if self._admin_group is not None:
            group_number("admin_group", self._admin_group)
        self._jobs: deque[Job] = deque()
        self._flying: dict[Flight, Job] = {}
        self._in_hand: set[Job] = set()  # what was taken in and is not answered
        self.wait = port.sleep

    # What the workers call.

    def wake(self) -> None:
        """End the sleep of one thread, or the next sleep."""
        self._port.wake()

    def receive(self) -> int:
        """Take what has come off the socket without waiting; return how many messages that was."""
        messages = self._port.receive(MOST_PER_TURN)
        for message in messages:
            self._accept(message)
        return len(messages)

    def _accept(self, message: Message) -> None:
        """Answer a message at once, hand it to the reload, or queue the job that it asks for."""
        # One byte more than is read is refused as too long; the socket takes frames as large as an image.
        frame = bytes(message.frames[0][: MAX_JSON_BYTES + 1]) if message.frames else b""
        try:
            self._serve(message, frame)
        except JetselError as error:
            self._refuse(message, frame, error)
        except Exception as error:  # the net at the door: whatever one message breaks, the next is read
            self._refuse(message, frame, unexpected(error, read_id(frame)))

    def _serve(self, message: Message, frame: bytes) -> None:
        if len(message.frames) > 2:
            raise BadRequestError(f"{len(message.frames)} frames: send the JSON, then the image, nothing else")
        request = decode_request(frame)
        if isinstance(request, Classify):
            job = admit(message, request, self.current, self._admission, self._metering)
            self._in_hand.add(job)
            self._jobs.append(job)
        elif len(message.frames) == 2:
            raise BadRequestError("only classify takes a second frame: send this one without")
        elif isinstance(request, Status):
            self._reply(message.route, self._status(request.id))
        else:
            check_admin(message.sender, self._admin_group)
            if not self.current.is_ready:
                raise LoadingError("the models are still loading: reload when they are there")
            if self.current.is_closed:
                raise ShuttingDownError("the daemon is stopping: it reads everything when it is back")
            self._reloads.ask((message.route, request))

    def _refuse(self, message: Message, frame: bytes, error: JetselError) -> None:
        self._tally.count(error.code)
        warn_of_limit(error, message.sender.name)
        if self.current.snapshot.config.log.requests:
            log_refusal(read_id(frame), error, message.sender.name)
        self._reply(message.route, failure(read_id(frame), error))

    def _put_in_front(self, probe: Job) -> None:
        self._in_hand.add(probe)
        self._jobs.appendleft(probe)

    def next_piece(self) -> Callable[[], None] | None:
        """The next thing to compute: models that photographs wait for before photographs that wait to be decoded.

        Where many wait to be decoded, models wait for a whole batch: that costs less than as many single runs, and
        delays nobody, since the queue behind is longer. Called under the pool's lock.
        """
        for snapshot in self.current.standing:
            for family in snapshot.families.values():
                batch = self._take(family.driver)
                if batch is not None:
                    return functools.partial(self._execute, family.driver, batch)
        return functools.partial(self._begin, self._jobs.popleft()) if self._jobs else None

    def _take(self, driver: Driver) -> Batch | None:
        return driver.take(patient=len(self._jobs) >= driver.max_batch)

    def has_more(self) -> bool:
        """Whether another piece may be there. Called under the pool's lock."""
        return bool(self._jobs) or any(
            family.driver.is_waited_for for snapshot in self.current.standing for family in snapshot.families.values()
        )

    def turned(self) -> None:
        """The calling thread has come round: its piece is done, and the socket is read."""
        self._watchdog.turned()

    # What the lifecycle calls.

    def progress(self, words: str, patience_s: float) -> None:
        """Note how far the loading at the start is, and tell the service manager when the next word comes at last."""
        self.current.progress = words
        self._notifier.progress(words, patience_s)

    def begin_serving(self) -> None:
        """Admit requests and feed the watchdog from now on: every model is loaded."""
        self.current.is_ready, self.current.progress = True, None
        self._watchdog.start()

    def reload(self) -> None:
        """Have everything read again, and served from the next request on; for a signal, which nobody answers."""
        self._reloads.ask()

    def refuse_new(self) -> int:
        """From now on only what was admitted is answered, and no reload begins; return how much of that is left."""
        self.current.is_closed = True
        self._stopping.set()
        self._reloads.close()
        return self._admission.in_queue

    @property
    def is_drained(self) -> bool:
        """Whether every message that came has been answered, as far as can be seen now."""
        return self._admission.in_queue == 0 and self._port.is_quiet

    def give_up(self) -> int:
        """Tell who is not answered yet to ask again, and return how many they are; whoever works on it says no more."""
        jobs = [job for job in self._in_hand.copy() if not job.is_probe]
        for job in jobs:
            self._finish(job, ShuttingDownError("the daemon has stopped: send again when it is back"))
        return len(jobs)

    def end(self, patience_s: float) -> bool:
        """Once the workers have stopped: end the reload that is under way; return whether it has ended."""
        return self._reloads.give_up(patience_s)

    # Work.

    def _begin(self, job: Job) -> None:
        """Decode the photograph, begin its policy, and run the first model where its engine is free."""
        driver = job.family.driver
        try:
            ended = run_about((job.request.id,), self._prepare, job)
        except Exception as error:  # the request loop's net: whatever one photograph breaks, the next is served
            self._finish(job, error)
            return
        if ended:
            self._finish(job, None)
            return
        batch = self._take(driver)  # its own run, mostly, while its input is warm in this core's cache
        if batch is not None:
            self._execute(driver, batch)

    def _prepare(self, job: Job) -> bool:
        flight = pipeline.prepare(job)
        self._flying[flight] = job  # before it begins: another thread may end it at once
        return job.family.driver.begin(flight)

    def _execute(self, driver: Driver, batch: Batch) -> None:
        """Run one model on the photographs of a batch, and answer the requests that end with it."""
        ended, defect = batch.flights, None
        try:
            ended = run_about(lambda: self._ids(batch), driver.execute, batch)
        except Exception as error:  # the net again: a defect of ours fails the batch, and each of it is told
            defect = error
        for flight in ended:
            job = self._flying.get(flight)
            if job is not None:  # else the end of the daemon has answered it
                self._finish(job, defect)

    def _ids(self, batch: Batch) -> tuple[str, ...]:
        jobs = [self._flying.get(flight) for flight in batch.flights]
        return tuple(job.request.id for job in jobs if job is not None)

    def _finish(self, job: Job, error: Exception | None) -> None:
        """Answer a request that has ended, or was ended by this error, and count it."""
        try:
            self._in_hand.remove(job)
        except KeyError:
            return  # the end of the daemon has answered it
        reply = self._answer(job, error)
        self.current.leave(job.snapshot)
        if job.flight is not None:
            self._flying.pop(job.flight, None)
        if job.is_probe:
            self._probe.over("ok" if isinstance(reply, Answer) else reply.code)
            return
        self._tally.ended(reply)
        work_ms = reply.stages_ms.total - reply.stages_ms.queue if isinstance(reply, Answer) else None
        self._admission.release(job.load, work_ms)
        if isinstance(reply, Answer):
            self._metering.answered(reply, job.family, job.policy)
        if self.current.snapshot.config.log.requests:
            log_reply(job, reply)
        self._reply(job.route, reply)

    def _answer(self, job: Job, error: Exception | None) -> Answer | Failure:
        try:
            if error is not None:
                raise error
            return pipeline.answer(job, self._metering)
        except JetselError as refused:
            return failure(job.request.id, refused)
        except Exception as defect:
            return failure(job.request.id, unexpected(defect, job.request.id))

    def _reply(self, route: Route, reply: Reply) -> None:
        self._port.send(route, encode(reply))

    def _status(self, request_id: str) -> StatusReply:
        queue = queue_status(self._admission, len(self._jobs), self.current.snapshot.workers)
        return status(request_id, self.current, self._tally, queue, self._port, self._metering, self._backends)
