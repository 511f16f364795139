"""The door: a request to classify becomes a job, or is refused before any work is done for it."""

from __future__ import annotations

import time

from jetsel.daemon.admission import Admission, Load
from jetsel.daemon.current import Current
from jetsel.daemon.job import Job
from jetsel.daemon.message import Message
from jetsel.daemon.metering.metering import Metering
from jetsel.errors import BadRequestError, LoadingError, ShuttingDownError
from jetsel.image import measure
from jetsel.wire import Classify


def admit(message: Message, request: Classify, current: Current, admission: Admission, metering: Metering) -> Job:
    """Return the job that a message of two frames asks for, counted in; raises the JetselError that refuses it."""
    received_s = time.monotonic()
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
        policy = metering.within_budget(family, family.policy_for(request), request)
        floor_ms = family.driver.floor_ms(policy) if request.deadline_ms is not None else 0.0
        client, data = message.sender.name, message.frames[1]
        admission.check(Load(client, data.nbytes, 0))  # a client or queue that is full costs no look at images
        measured = measure(data, request.pixels, snapshot.limits, family.decode_px)
        load = Load(client, data.nbytes, measured.pixels)
        job = Job(
            route=message.route,
            request=request,
            data=data,
            load=load,
            snapshot=snapshot,
            family=family,
            policy=policy,
            fallback=family.fallback if (request.on_doubt or family.on_doubt) == "use" else None,
            received_s=received_s,
            deadline_s=None if request.deadline_ms is None else received_s + request.deadline_ms / 1e3,
            measured=measured,
        )
        admission.admit(load, request.deadline_ms, floor_ms)
    except BaseException:
        current.leave(snapshot)
        raise
    return job
