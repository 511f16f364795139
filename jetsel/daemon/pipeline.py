"""The life of a request on one page, from the message to the reply, top to bottom."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from jetsel import image
from jetsel.base.errors import BadRequestError, InDoubtError, JetselError, ShuttingDownError
from jetsel.base.events import run_about
from jetsel.daemon.admission import Admission, Work
from jetsel.daemon.answer import answer, log_refusal, log_reply, unexpected, warn_of_limit
from jetsel.daemon.intake import Intake
from jetsel.daemon.job import Job
from jetsel.daemon.metering import Metering
from jetsel.daemon.pace import allowed_ms
from jetsel.daemon.port import Message, Route
from jetsel.daemon.snapshot import CurrentSnapshot
from jetsel.daemon.tally import Tally
from jetsel.features import extract
from jetsel.policies import Decision
from jetsel.policies.policy import Outlook
from jetsel.policies.requirements import Requirements
from jetsel.runtime import Driver, RequestRun
from jetsel.runtime.forecast import UNLIMITED, Allowance, load_for_later_requests, outlook
from jetsel.runtime.model_queue import SentImage
from jetsel.wire import (
    MAX_JSON_BYTES,
    Answer,
    Classify,
    Failure,
    Reload,
    Reply,
    Stages,
    Status,
    decode_request,
    encode,
    failure,
    read_id,
)


class Pipeline:
    """Turns messages into jobs, and carries jobs to their replies. Any thread may call."""

    def __init__(
        self,
        current: CurrentSnapshot,
        admission: Admission,
        tally: Tally,
        metering: Metering,
        send: Callable[[Route, bytes], None],
        serve_other: Callable[[Message, Status | Reload], None],
        probe_ended: Callable[[str], None],
    ) -> None:
        """serve_other: answers all but classify requests. probe_ended: receives the outcome of the watchdog's probe."""
        self._current = current
        self._admission = admission
        self._tally = tally
        self._metering = metering
        self._send = send
        self._serve_other = serve_other
        self._probe_ended = probe_ended
        self._intake = Intake(current, admission, tally, metering)
        self._unanswered: set[Job] = set()
        self.begin_later: Callable[[Job], None]  # queues a job behind all that wait; set by the worker pool

    # The message becomes a job, or is answered at once.

    def take_in(self, message: Message) -> list[Job]:
        """Return the job of a message; an empty list if it was refused, or is not a classify request."""
        # One byte over the limit is enough to refuse the JSON; the socket takes frames as large as an image.
        frame = bytes(message.frames[0][: MAX_JSON_BYTES + 1]) if message.frames else b""
        try:
            if len(message.frames) > 2:
                raise BadRequestError(f"{len(message.frames)} frames: send the JSON, then the image, nothing else")
            request = decode_request(frame)
            if isinstance(request, Classify):
                job = self._intake.job(message, request)
                self._unanswered.add(job)
                return [job]
            if len(message.frames) == 2:
                raise BadRequestError("only classify takes a second frame: send this request without one")
            self._serve_other(message, request)
        except JetselError as error:
            self._refuse(message, frame, error)
        except Exception as error:  # a defect that one message shows must not stop the next
            self._refuse(message, frame, unexpected(error, read_id(frame)))
        return []

    def take_in_probe(self, job: Job) -> None:
        """Note the watchdog's probe as unanswered; no counter includes it."""
        self._unanswered.add(job)

    # The thread that has a job carries it as far as it can, mostly to the reply.

    def carry(self, *jobs: Job) -> None:
        """Decode the images, choose the policies, run the models, and reply."""
        begun: dict[Driver, list[RequestRun]] = {}
        for job in jobs:
            run = run_about((job.message.id,), self._started, job)
            if run is not None:
                begun.setdefault(job.family.driver, []).append(run)
        for driver, runs in begun.items():
            self._run_models(driver, *runs)

    def _started(self, job: Job) -> RequestRun | None:
        """Start one job and return its run; None if that failed and the job has its reply."""
        try:
            is_timed = job.front is not None or job.deadline_s is not None
            return self.start(job, self._allowed(job) if is_timed else UNLIMITED)
        except Exception as error:  # a defect that one image shows must not stop the next
            self._finish(job, error)
            return None

    def _allowed(self, job: Job) -> Allowance:
        """Return what the models may take for this request, given the queue and the power budget."""
        queue_ms, target_s = math.inf, job.target_s
        if target_s is not None:
            admission, target_ms = self._admission, (target_s - job.received_s) * 1e3
            queue_ms = allowed_ms(target_ms, admission.in_queue, job.snapshot.workers, admission.around_ms)
        return Allowance(queue_ms, self._metering.budget.allowed_mj)

    @staticmethod
    def start(job: Job, allowed: Allowance = UNLIMITED) -> RequestRun:
        """Decode the image, forecast times, choose the operating point, compute its features, and begin the policy."""
        began_s = time.monotonic()
        photograph = job.photograph = job.decode()
        decoded_s = time.monotonic()
        message, family, ahead = job.message, job.family, None
        if job.front is not None or job.deadline_s is not None or isinstance(job.policy, Requirements):
            ahead = _forecast(job, photograph, allowed)
            if job.front is not None:
                job.policy = job.front.select_now(ahead).policy
        defaults = family.defaults
        fallback = defaults.fallback if (message.on_doubt or defaults.on_doubt) == "use" else None
        queue_ms, decode_ms = (began_s - job.received_s) * 1e3, (decoded_s - began_s) * 1e3
        stages = Stages(queue_ms, decode_ms, None, 0.0, [], 0.0, 0.0, 0.0)
        run = RequestRun(None, fallback, ahead, policy=job.policy, request=job, stages=stages)
        job.run = run
        if job.policy.features:
            run.features = _features(job, photograph, stages)
        family.driver.start(run)
        return run

    def _run_models(self, driver: Driver, *runs: RequestRun) -> None:
        """Run models for these runs and for waiting ones, as far as engines are free; reply to those that ended."""
        for run in driver.continue_runs(*runs):
            assert isinstance(run.request, Job)
            self._finish(run.request, None)

    def carry_waiting(self) -> None:
        """Continue runs whose engine is free again, and runs whose result came from the edge server."""
        for snapshot in self._current.open_snapshots:
            for family in snapshot.families.values():
                if family.driver.has_work:
                    self._run_models(family.driver)

    # The reply.

    def _finish(self, job: Job, error: Exception | None) -> None:
        """Answer a job that ended, or failed with this error, unless it was answered before; count it."""
        try:
            self._unanswered.remove(job)
        except KeyError:
            return  # `give_up` has answered it
        reply = self._reply(job, error)
        following, load = ([], job.load) if job.crop is None else self._intake.following(job, job.crop)
        self._unanswered.update(following)
        self._current.leave(job.snapshot)
        if job.route is None:
            self._probe_ended("ok" if isinstance(reply, Answer) else reply.code)
            return
        observe = self._current.snapshot.config.observe
        self._tally.ended(reply, job.message.deadline_ms, class_counts=observe.class_counts)
        self._admission.release(load, _work(job, reply) if isinstance(reply, Answer) else None)
        if isinstance(reply, Answer):
            self._metering.add(reply, job.family, job.policy)
            if reply.operating_point is not None:
                cheapest = None if job.front is None else job.front.cheapest
                used = job.family.points_used
                used.answered(reply.operating_point, is_cheapest=reply.operating_point == cheapest)
        for one in following:
            self.begin_later(one)
        if self._current.snapshot.config.log.requests:
            log_reply(job, reply)
        whole = reply if job.crop is None else job.crop.crops.answered(job.crop.number, reply)
        if whole is not None:
            self.reply(job.route, whole)
        self._notice_drift(job, reply)
        job.run = None  # breaks the reference cycle, which would keep the image until a garbage collection

    def _notice_drift(self, job: Job, reply: Answer | Failure) -> None:
        """Feed the drift check after the reply has been sent."""
        drift, photograph, snapshot = job.family.drift, job.photograph, job.snapshot
        if drift is None or photograph is None:
            return
        outcome = None if job.run is None else job.run.outcome
        if isinstance(outcome, Decision | InDoubtError) and outcome.covered is not None:
            is_in_doubt = not isinstance(outcome, Decision) or outcome.in_doubt
            drift.count_doubt(outcome.covered, is_in_doubt=is_in_doubt)
        if not isinstance(reply, Answer):
            return
        if drift.answered(job.policy.name, reply, snapshot.config.observe.drift_every):
            try:
                drift.look(photograph, job.data, snapshot.limits)
            except Exception as error:  # the reply has been sent
                unexpected(error, job.message.id)

    def _reply(self, job: Job, error: Exception | None) -> Answer | Failure:
        """Return the answer, or the failure for the job's error or its policy's outcome."""
        try:
            if error is None:
                assert job.run is not None
                assert job.run.outcome is not None
                if isinstance(job.run.outcome, Decision):
                    return answer(job, job.run, job.run.outcome, self._metering)
                error = job.run.outcome  # not raised: its traceback and the run would keep each other
        except Exception as defect:  # the request still gets its reply
            error = defect
        refused = error if isinstance(error, JetselError) else unexpected(error, job.message.id)
        return failure(job.message.id, refused)

    def _refuse(self, message: Message, frame: bytes, error: JetselError) -> None:
        self._tally.count(error.code)
        warn_of_limit(error, message.sender.name)
        if self._current.snapshot.config.log.requests:
            log_refusal(read_id(frame), error, message.sender.name)
        self.reply(message.route, failure(read_id(frame), error))

    def reply(self, route: Route, reply: Reply) -> None:
        """Send a reply to the sender of its message."""
        self._send(route, encode(reply))

    def give_up(self) -> int:
        """Answer the requests in work with `shutting-down`; return their number. Later results are discarded."""
        given_up = 0
        while jobs := [job for job in self._unanswered.copy() if job.route is not None]:  # further boxes may follow
            given_up += len(jobs)
            for job in jobs:
                self._finish(job, ShuttingDownError("the daemon has stopped: send again when it is back"))
        return given_up


def _forecast(job: Job, photograph: image.Photograph, allowed: Allowance) -> Outlook:
    """Return the forecast of each model's time, and begin loading models that the next request needs."""
    queues, target_s, file = job.family.driver.queues, job.target_s, job.file
    size_px, file_bytes = (photograph.width_px, photograph.height_px), None if file is None else len(file)
    sent = SentImage(size_px, file_bytes, job.message.on_device)
    ahead = outlook(queues, math.inf if target_s is None else target_s, time.monotonic(), sent, allowed)
    load_for_later_requests(queues, job.policy.models, ahead)
    return ahead


def _features(job: Job, photograph: image.Photograph, stages: Stages) -> NDArray[np.float32]:
    """Return the features that the policy reads (features,), and note how long that took."""
    began_s = time.monotonic()
    view = image.of_area(photograph, job.data, job.snapshot.limits, job.family.features_px)
    size_px = photograph.width_px, photograph.height_px
    features = extract(view.bgr, job.policy.features, job.family.features_px, size_px)
    stages.features = (time.monotonic() - began_s) * 1e3
    return features


def _work(job: Job, answer: Answer) -> Work:
    """Return a worker's time for the answer: no waiting, no edge server, and only a share of each batch."""
    stages = answer.stages_ms
    models_ms = 0.0
    for ran in answer.ran:
        models_ms += 0.0 if ran.sent_bytes is not None else ran.latency_ms / ran.batch
    around_ms = stages.decode + (stages.features or 0.0) + stages.choice + (stages.input or 0.0)
    target_s = job.target_s
    of_limit = None if target_s is None or not job.was_near else stages.total / 1e3 / (target_s - job.received_s)
    return Work(around_ms + models_ms, models_ms, of_limit)
