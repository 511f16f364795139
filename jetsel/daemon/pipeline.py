"""The life of a request on one page, from the message to the reply, top to bottom."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from jetsel import image
from jetsel.base.errors import BadRequestError, InDoubtError, JetselError, ShuttingDownError
from jetsel.base.events import run_about
from jetsel.daemon.admission import Admission, Work
from jetsel.daemon.answer import build_answer, log_refusal, log_reply, log_unexpected, warn_of_limit
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


@dataclass(eq=False)
class Pipeline:
    """Turns messages into jobs, and processes jobs until they have their replies. Any thread may call.

    send: sends an encoded reply. serve_other: answers status and reload requests. probe_ended: receives the outcome of
    the watchdog's probe, "ok" or an error's code. enqueue: puts a job at the end of the queue; the worker pool sets it.
    """

    current: CurrentSnapshot
    admission: Admission
    tally: Tally
    metering: Metering
    send: Callable[[Route, bytes], None]
    serve_other: Callable[[Message, Status | Reload], None]
    probe_ended: Callable[[str], None]
    enqueue: Callable[[Job], None] = field(init=False)
    _unanswered: set[Job] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        self._intake = Intake(self.current, self.admission, self.tally, self.metering)

    # The message becomes a job, or is answered at once.

    def take_in(self, message: Message) -> list[Job]:
        """Return a list of the message's job; an empty list if it was answered: refused, or no classify request."""
        # One byte over the limit is enough to refuse the JSON; the socket takes frames as large as an image.
        frame = bytes(message.frames[0][: MAX_JSON_BYTES + 1]) if message.frames else b""
        try:
            if len(message.frames) > 2:
                raise BadRequestError(f"{len(message.frames)} frames: send the JSON, then the image, nothing else")
            request = decode_request(frame)
            if isinstance(request, Classify):
                job = self._intake.admit(message, request)
                self._unanswered.add(job)
                return [job]
            if len(message.frames) == 2:
                raise BadRequestError("only classify takes a second frame: send this request without one")
            self.serve_other(message, request)
        except JetselError as error:
            self._refuse(message, frame, error)
        except Exception as error:  # a defect that one message shows must not stop the next
            self._refuse(message, frame, log_unexpected(error, read_id(frame)))
        return []

    def take_in_probe(self, job: Job) -> None:
        """Note the watchdog's probe as unanswered; no counter includes it."""
        self._unanswered.add(job)

    def process(self, *jobs: Job) -> None:
        """Decode the images, run models and reply. A job whose model is busy or remote waits for `continue_waiting`."""
        begun: dict[Driver, list[RequestRun]] = {}
        for job in jobs:
            run = run_about((job.message.id,), self._start_or_fail, job)
            if run is not None:
                begun.setdefault(job.family.driver, []).append(run)
        for driver, runs in begun.items():
            self._run_models(driver, *runs)

    def _start_or_fail(self, job: Job) -> RequestRun | None:
        """Start one job and return its run; None if that failed, after the failure has been sent."""
        try:
            is_timed = job.front is not None or job.deadline_s is not None
            return self.start(job, self._allowance(job) if is_timed else UNLIMITED)
        except Exception as error:  # a defect that one image shows must not stop the next
            self._finish(job, error)
            return None

    def _allowance(self, job: Job) -> Allowance:
        """Return the time and the energy that models may take for this request, by the queue and the power budget."""
        models_ms, target_s = math.inf, job.target_s
        if target_s is not None:
            admission, target_ms = self.admission, (target_s - job.received_s) * 1e3
            models_ms = allowed_ms(target_ms, admission.in_queue, job.snapshot.workers, admission.overhead_ms)
        return Allowance(models_ms, self.metering.budget.allowed_mj)

    @staticmethod
    def start(job: Job, allowed: Allowance = UNLIMITED) -> RequestRun:
        """Decode the image, forecast times, choose the operating point, compute its features, and begin the policy."""
        began_s = time.monotonic()
        photograph = job.photograph = job.decode()
        decoded_s = time.monotonic()
        message, family, forecast = job.message, job.family, None
        if job.front is not None or job.deadline_s is not None or isinstance(job.policy, Requirements):
            forecast = _forecast(job, photograph, allowed)
            if job.front is not None:
                job.policy = job.front.select_now(forecast).policy
        defaults = family.defaults
        fallback = defaults.fallback if (message.on_doubt or defaults.on_doubt) == "use" else None
        queue_ms, decode_ms = (began_s - job.received_s) * 1e3, (decoded_s - began_s) * 1e3
        stages = Stages(queue_ms, decode_ms, None, 0.0, [], 0.0, 0.0, 0.0)
        run = RequestRun(None, fallback, forecast, policy=job.policy, request=job, stages=stages)
        job.run = run
        if job.policy.features:
            run.features = _features(job, photograph, stages)
        family.driver.start(run)
        return run

    def _run_models(self, driver: Driver, *runs: RequestRun) -> None:
        """Run models for these runs and for waiting ones, as far as engines are free; reply to runs that ended."""
        for run in driver.continue_runs(*runs):
            assert isinstance(run.request, Job)
            self._finish(run.request, None)

    def continue_waiting(self) -> None:
        """Continue runs whose engine is free again or whose result came from the edge server; reply if they end."""
        for snapshot in self.current.open_snapshots:
            for family in snapshot.families.values():
                if family.driver.has_work:
                    self._run_models(family.driver)

    # The reply.

    def _finish(self, job: Job, error: Exception | None) -> None:
        """Answer a job whose run ended, or that failed with this error; count it; admit its message's next boxes."""
        try:
            self._unanswered.remove(job)
        except KeyError:
            return  # `give_up` has answered it
        reply = self._build_reply(job, error)
        next_boxes, load = ([], job.load) if job.crop is None else self._intake.admit_next_boxes(job, job.crop)
        self._unanswered.update(next_boxes)
        self.current.leave(job.snapshot)
        if job.route is None:
            self.probe_ended("ok" if isinstance(reply, Answer) else reply.code)
            return
        observe = self.current.snapshot.config.observe
        self.tally.count_reply(reply, job.message.deadline_ms, class_counts=observe.class_counts)
        self.admission.release(load, _work(job, reply) if isinstance(reply, Answer) else None)
        if isinstance(reply, Answer):
            self.metering.add_answer(reply, job.family, job.policy)
            if reply.operating_point is not None:
                cheapest = None if job.front is None else job.front.cheapest
                used = job.family.points_used
                used.count_answer(reply.operating_point, is_cheapest=reply.operating_point == cheapest)
        for next_job in next_boxes:
            self.enqueue(next_job)
        if self.current.snapshot.config.log.requests:
            log_reply(job, reply)
        message_reply = reply if job.crop is None else job.crop.crops.add_reply(job.crop.number, reply)
        if message_reply is not None:
            self.reply(job.route, message_reply)
        self._check_drift(job, reply)
        job.run = None  # breaks the reference cycle, which would keep the image until a garbage collection

    def _check_drift(self, job: Job, reply: Answer | Failure) -> None:
        """Add an answer to the statistics by which a calibration that no longer fits is noticed, after the reply."""
        drift, photograph, snapshot = job.family.drift, job.photograph, job.snapshot
        if drift is None or photograph is None:
            return
        outcome = None if job.run is None else job.run.outcome
        if isinstance(outcome, Decision | InDoubtError) and outcome.covered is not None:
            is_in_doubt = not isinstance(outcome, Decision) or outcome.in_doubt
            drift.count_doubt(outcome.covered, is_in_doubt=is_in_doubt)
        if not isinstance(reply, Answer):
            return
        if drift.add_answer(job.policy.name, reply, snapshot.config.observe.drift_every):
            try:
                drift.add_image(photograph, job.data, snapshot.limits)
            except Exception as error:  # the reply has been sent
                log_unexpected(error, job.message.id)

    def _build_reply(self, job: Job, error: Exception | None) -> Answer | Failure:
        """Return the answer, or the failure for this error or for the error with which the policy ended."""
        try:
            if error is None:
                assert job.run is not None
                assert job.run.outcome is not None
                if isinstance(job.run.outcome, Decision):
                    return build_answer(job, job.run, job.run.outcome, self.metering)
                error = job.run.outcome  # not raised: its traceback and the run would keep each other
        except Exception as defect:  # the request still gets its reply
            error = defect
        refused = error if isinstance(error, JetselError) else log_unexpected(error, job.message.id)
        return failure(job.message.id, refused)

    def _refuse(self, message: Message, frame: bytes, error: JetselError) -> None:
        """Count, log and send the refusal of a message. frame: its JSON, from which the request's id is read."""
        self.tally.count(error.code)
        warn_of_limit(error, message.sender.name)
        if self.current.snapshot.config.log.requests:
            log_refusal(read_id(frame), error, message.sender.name)
        self.reply(message.route, failure(read_id(frame), error))

    def reply(self, route: Route, reply: Reply) -> None:
        """Encode and send a reply."""
        self.send(route, encode(reply))

    def give_up(self) -> int:
        """Answer all unanswered requests with `shutting-down`; return their number. Later results are discarded."""
        given_up = 0
        while jobs := [job for job in self._unanswered.copy() if job.route is not None]:  # further boxes may follow
            given_up += len(jobs)
            for job in jobs:
                self._finish(job, ShuttingDownError("the daemon has stopped: send again when it is back"))
        return given_up


def _forecast(job: Job, photograph: image.Photograph, allowed: Allowance) -> Outlook:
    """Return the forecast of each model's time for this job, and begin loading unloaded models for the next request."""
    queues, target_s, file = job.family.driver.queues, job.target_s, job.file
    size_px, file_bytes = (photograph.width_px, photograph.height_px), None if file is None else len(file)
    sent = SentImage(size_px, file_bytes, job.message.on_device)
    forecast = outlook(queues, math.inf if target_s is None else target_s, time.monotonic(), sent, allowed)
    load_for_later_requests(queues, job.policy.models, forecast)
    return forecast


def _features(job: Job, photograph: image.Photograph, stages: Stages) -> NDArray[np.float32]:
    """Return the features (features,) that the policy reads, and set their time in `stages`."""
    began_s = time.monotonic()
    view = image.to_area(photograph, job.data, job.snapshot.limits, job.family.features_px)
    size_px = photograph.width_px, photograph.height_px
    features = extract(view.bgr, job.policy.features, job.family.features_px, size_px)
    stages.features = (time.monotonic() - began_s) * 1e3
    return features


def _work(job: Job, answer: Answer) -> Work:
    """Return a worker's time for the answer: no waiting, no edge server, and only its share of each batch."""
    stages = answer.stages_ms
    models_ms = 0.0
    for ran in answer.ran:
        models_ms += 0.0 if ran.sent_bytes is not None else ran.latency_ms / ran.batch
    overhead_ms = stages.decode + (stages.features or 0.0) + stages.choice + (stages.input or 0.0)
    target_s = job.target_s
    limit_share = (
        None if target_s is None or not job.was_near_limit else stages.total / 1e3 / (target_s - job.received_s)
    )
    return Work(overhead_ms + models_ms, models_ms, limit_share)
