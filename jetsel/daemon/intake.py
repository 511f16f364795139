"""Turns a classify message into a job, if it is admitted; a message with boxes gives one job for each box."""

from __future__ import annotations

import time
from functools import partial

from jetsel import image
from jetsel.base.errors import BadRequestError, JetselError, LoadingError, ShuttingDownError
from jetsel.daemon.admission import Admission, Load
from jetsel.daemon.answer import warn_of_limit
from jetsel.daemon.crops import AT_ONCE, Crop, Crops, pixels_in_boxes
from jetsel.daemon.deciding import front_for, policy_for
from jetsel.daemon.job import Job
from jetsel.daemon.metering import Metering
from jetsel.daemon.port import Message
from jetsel.daemon.snapshot import CurrentSnapshot
from jetsel.daemon.tally import Tally
from jetsel.image.limits import MAX_SIDE_PX
from jetsel.policies.deadline import Deadline
from jetsel.wire import Classify, failure


class Intake:
    """Admits classify requests: chooses policies, reads the image's size, checks limits. Any thread may call."""

    def __init__(self, current: CurrentSnapshot, admission: Admission, tally: Tally, metering: Metering) -> None:
        self._current = current
        self._admission = admission
        self._tally = tally
        self._metering = metering

    def admit(self, message: Message, request: Classify) -> Job:
        """Return the job, for the first box if there are boxes. Raises the JetselError that refuses the message."""
        received_s, current = time.monotonic(), self._current
        if len(message.frames) < 2:
            raise BadRequestError("the image is missing: send it as the frame after the JSON")
        if current.is_closed:
            raise ShuttingDownError("the daemon is stopping: send again when it is back")
        if not current.is_ready:
            progress = f" ({current.progress})" if current.progress else ""
            raise LoadingError(f"the models are still loading{progress}: send again in a moment")
        snapshot = current.enter()
        try:
            family = snapshot.family(request.family)
            wanted_policy = self._metering.in_conditions(family, policy_for(family, request))
            front = front_for(family, request, wanted_policy)  # operating points, None for a fixed policy
            if front is not None:
                front = family.promises.guarantee_front(front, request.wrong_at_most)
                policy = front.points[0].policy
            else:
                policy = family.promises.guarantee(wanted_policy, request.wrong_at_most)
            target_ms = None if front is None else snapshot.config.policy.latency_target_ms
            limit_ms = request.deadline_ms if target_ms is None else target_ms
            candidates = [policy] if front is None else [point.policy for point in front.points]
            least_models_ms, loading_ms = (0.0, 0.0) if limit_ms is None else family.driver.least_times_ms(*candidates)
            client, data = message.sender.name, message.frames[1]
            self._admission.check(
                Load(client, data.nbytes, 0)
            )  # before any work for the image of a client at its limit
            decode_px = family.decode_px if request.boxes is None else MAX_SIDE_PX
            measured = image.measure(data, request.pixels, snapshot.limits, decode_px)
            pixels, size = measured.pixels, request.pixels or measured.header
            if request.boxes is not None and size is not None:
                pixels += pixels_in_boxes(request.boxes, size.width, size.height)
            load = Load(client, data.nbytes, pixels)
            job = Job(message.route, request, data, load, snapshot, family, policy, received_s, front, measured)
            adapts = front is not None or isinstance(policy, Deadline)
            times_ms = request.deadline_ms, least_models_ms, loading_ms
            admit_load = partial(self._admission.admit, target_ms=target_ms, adapts=adapts)
            job.was_near_limit = admit_load(load, *times_ms)
        except BaseException:
            current.leave(snapshot)
            raise
        if request.boxes is not None:
            job.crop = Crop(Crops(request.id, request.boxes, partial(admit_load, None, *times_ms)), 0)
        return job

    def admit_next_boxes(self, job: Job, ended_box: Crop) -> tuple[list[Job], Load | None]:
        """Return the jobs of the next boxes of a message, now that a box has ended; and its load, once no box is left.

        job: of the ended box. The load is None while boxes are left. A box that would be late fails at once.
        """
        crops, jobs = ended_box.crops, list[Job]()
        policy = job.policy if job.front is None else job.front.points[0].policy  # as at the message's admission
        job_fields = job.route, job.message, job.data, job.load, job.snapshot, job.family, policy, job.received_s
        with crops.lock:
            crops.admitted_count -= 1
            while crops.not_admitted and crops.admitted_count < AT_ONCE:
                crop = Crop(crops, crops.not_admitted.popleft())
                try:
                    crops.admit(waited_ms=(time.monotonic() - job.received_s) * 1e3)
                except JetselError as error:
                    self._tally.count(error.code)
                    warn_of_limit(error, job.load.client)
                    crops.add_reply(crop.number, failure(job.message.id, error))
                    continue
                self._current.enter(job.snapshot)
                crops.admitted_count += 1
                jobs.append(Job(*job_fields, job.front, job.measured, crop))
            return jobs, None if crops.admitted_count else job.load
