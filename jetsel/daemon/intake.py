"""Turns an admitted message into a job, and each of its boxes into one when its turn comes."""

from __future__ import annotations

import time
from functools import partial

from jetsel import image
from jetsel.base.errors import BadRequestError, JetselError, LoadingError, ShuttingDownError
from jetsel.daemon.admission import Admission, Load
from jetsel.daemon.answer import warn_of_limit
from jetsel.daemon.crops import AT_ONCE, Crop, Crops, pixels_of
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
    """Chooses the policy or the operating points, measures the image, and asks for admission. Any thread may call."""

    def __init__(self, current: CurrentSnapshot, admission: Admission, tally: Tally, metering: Metering) -> None:
        self._current = current
        self._admission = admission
        self._tally = tally
        self._metering = metering

    def job(self, message: Message, request: Classify) -> Job:
        """Return the admitted job; if the message has boxes, the first one's job (`following` returns the others).

        Raises the JetselError that refuses the message, before any work is done for it.
        """
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
            front = front_for(family, request, wanted_policy)
            if front is not None:
                front = family.promises.wrap_front(front, request.wrong_at_most)
                policy = front.points[0].policy
            else:
                policy = family.promises.wrap(wanted_policy, request.wrong_at_most)
            target_ms = None if front is None else snapshot.config.policy.latency_target_ms
            limit_ms = request.deadline_ms if target_ms is None else target_ms
            paths = [policy] if front is None else [point.policy for point in front.points]
            floor_ms, loading_ms = (0.0, 0.0) if limit_ms is None else family.driver.least_times_ms(*paths)
            client, data = message.sender.name, message.frames[1]
            self._admission.check(Load(client, data.nbytes, 0))  # first: a client at its limit costs no look at images
            decode_px = family.decode_px if request.boxes is None else MAX_SIDE_PX
            measured = image.measure(data, request.pixels, snapshot.limits, decode_px)
            pixels, sized = measured.pixels, request.pixels or measured.header
            if request.boxes is not None and sized is not None:
                pixels += pixels_of(request.boxes, sized.width, sized.height)
            load = Load(client, data.nbytes, pixels)
            given = message.route, request, data, load, snapshot, family, policy, received_s
            job = Job(*given, front, measured)
            adapts = front is not None or isinstance(policy, Deadline)
            limits = request.deadline_ms, floor_ms, loading_ms
            admit = partial(self._admission.admit, target_ms=target_ms, adapts=adapts)
            job.was_near = admit(load, *limits)
        except BaseException:
            current.leave(snapshot)
            raise
        if request.boxes is not None:
            job.crop = Crop(Crops(request.id, request.boxes, partial(admit, None, *limits)), 0)
        return job

    def following(self, job: Job, box: Crop) -> tuple[list[Job], Load | None]:
        """Return the next boxes' jobs after a box has ended, and the message's load if no box is left, else None.

        A box that cannot be in time any more gets its failure here.
        """
        crops, jobs = box.crops, list[Job]()
        policy = job.policy if job.front is None else job.front.points[0].policy
        given = job.route, job.message, job.data, job.load, job.snapshot, job.family, policy, job.received_s
        with crops.lock:
            crops.in_work -= 1
            while crops.left and crops.in_work < AT_ONCE:
                crop = Crop(crops, crops.left.popleft())
                try:
                    crops.admit(since_ms=(time.monotonic() - job.received_s) * 1e3)
                except JetselError as error:
                    self._tally.count(error.code)
                    warn_of_limit(error, job.load.client)
                    crops.answered(crop.number, failure(job.message.id, error))
                    continue
                self._current.enter(job.snapshot)
                crops.in_work += 1
                jobs.append(Job(*given, job.front, job.measured, crop))
            return jobs, None if crops.in_work else job.load
