"""A message becomes a job, or one for each of its boxes, if they may be let in."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from jetsel import image
from jetsel.base.errors import BadRequestError, JetselError, LoadingError, ShuttingDownError
from jetsel.daemon.admission import Admission, Load
from jetsel.daemon.answer import warn_of_limit
from jetsel.daemon.crops import Crop, Crops
from jetsel.daemon.deciding import front_for, policy_for
from jetsel.daemon.job import Job
from jetsel.daemon.metering.metering import Metering
from jetsel.daemon.port import Message
from jetsel.daemon.snapshot import Current
from jetsel.daemon.tally import Tally
from jetsel.image.limits import MAX_SIDE_PX
from jetsel.policies.deadline import Deadline
from jetsel.wire import Boxes, Classify, failure


class Intake:
    """Chooses the policy or the front, measures the image, and asks the admission. Any thread may call."""

    def __init__(self, current: Current, admission: Admission, tally: Tally, metering: Metering) -> None:
        self._current = current
        self._admission = admission
        self._tally = tally
        self._metering = metering

    def jobs(self, message: Message, request: Classify) -> list[Job]:
        """Return the job, or one for each box, counted in.

        Raises the JetselError that refuses it before any work is done for it. What refuses a later box than the first
        is the reply to that box.
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
            asked = self._metering.in_conditions(family, policy_for(family, request, self._metering.low_battery))
            front = front_for(family, request, asked)
            if front is not None:
                front = family.promising.wrap_front(front, request.criterion, request.wrong_at_most)
                policy = front.points[0].policy
            else:
                policy = family.promising.wrap(asked, request.criterion, request.wrong_at_most)
            target_ms = None if front is None else snapshot.config.policy.latency_target_ms
            limit_ms = request.deadline_ms if target_ms is None else target_ms
            paths = [policy] if front is None else [point.policy for point in front.points]
            floor_ms, loading_ms = (0.0, 0.0) if limit_ms is None else family.driver.floor_ms(*paths)
            client, data = message.sender.name, message.frames[1]
            self._admission.check(Load(client, data.nbytes, 0))  # who is at a limit costs no look at an image
            decode_px = family.decode_px if request.boxes is None else MAX_SIDE_PX
            measured = image.measure(data, request.pixels, snapshot.limits, decode_px)
            boxes = 1 if request.boxes is None else len(request.boxes.xywh)
            load = Load(client, data.nbytes // boxes, measured.pixels // boxes)
            deadline_s = None if request.deadline_ms is None else received_s + request.deadline_ms / 1e3
            fallback = family.fallback if (request.on_doubt or family.on_doubt) == "use" else None
            target_s = None if limit_ms is None else received_s + limit_ms / 1e3
            job = Job(
                message.route,
                request,
                data,
                load,
                snapshot,
                family,
                policy,
                fallback,
                received_s,
                deadline_s,
                target_s,
                front,
                measured,
            )
            adapts = front is not None or isinstance(policy, Deadline)
            limits_ms = request.deadline_ms, floor_ms, loading_ms
            admit = partial(self._admission.admit, load, *limits_ms, target_ms=target_ms, adapts=adapts)
            admit()
        except BaseException:
            current.leave(snapshot)
            raise
        return [job] if request.boxes is None else self._for_boxes(job, request.boxes, admit)

    def _for_boxes(self, first: Job, boxes: Boxes, admit: Callable[[], None]) -> list[Job]:
        """Return a job for each box that is let in: the first, which is, and others like it."""
        crops = Crops(first.request.id, boxes)
        first.crop = Crop(crops, 0)
        jobs = [first]
        for number in range(1, len(boxes.xywh)):
            crop = Crop(crops, number)
            try:
                admit()
            except JetselError as error:
                self._tally.count(error.code)
                warn_of_limit(error, first.load.client)
                crop.answered(failure(first.request.id, error))
                continue
            self._current.enter_again(first.snapshot)
            jobs.append(replace(first, crop=crop))
        return jobs
