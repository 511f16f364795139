"""The door: each message off the socket is answered at once, handed to the reload, or admitted as a job."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from jetsel.daemon.admission import Admission
from jetsel.daemon.clients import Load
from jetsel.daemon.current import Current
from jetsel.daemon.job import Job
from jetsel.daemon.message import Message, Route
from jetsel.daemon.metering.metering import Metering
from jetsel.daemon.request_log import log_refusal, warn_of_limit
from jetsel.daemon.shortage import unexpected
from jetsel.daemon.tally import Tally
from jetsel.daemon.trust import Trust
from jetsel.errors import BadRequestError, JetselError, LoadingError, ShuttingDownError
from jetsel.image import measure
from jetsel.wire import (
    MAX_JSON_BYTES,
    Classify,
    Reload,
    Reply,
    Status,
    StatusReply,
    decode_request,
    failure,
    read_id,
)

log = logging.getLogger("jetsel.daemon")


class Door:
    """Reads messages and lets requests in. Any worker may call it."""

    def __init__(
        self,
        current: Current,
        admission: Admission,
        tally: Tally,
        metering: Metering,
        trust: Trust,
        reply: Callable[[Route, Reply], None],
        status: Callable[[str], StatusReply],
        reload: Callable[[Route, Reload], None],
    ) -> None:
        """reply: sends one; status: tells how the daemon fares, for a request's id; reload: begins one, and answers."""
        self._current = current
        self._admission = admission
        self._tally = tally
        self._metering = metering
        self._trust = trust
        self._reply = reply
        self._status = status
        self._reload = reload
        self.is_closed = False  # once the daemon stops: only what was admitted is answered

    def accept(self, message: Message) -> Job | None:
        """Return the job that a message asks for; None where it was answered, or will be, without one."""
        # One byte more than is read is refused as too long; the socket takes frames as large as an image.
        frame = bytes(message.frames[0][: MAX_JSON_BYTES + 1]) if message.frames else b""
        try:
            client = message.sender.name
            if len(message.frames) > 2:
                raise BadRequestError(f"{len(message.frames)} frames: send the JSON, then the image, nothing else")
            request = decode_request(frame)
            if isinstance(request, Classify):
                return self._admit(message, request, client)
            if len(message.frames) == 2:
                raise BadRequestError("only classify takes a second frame: send this one without")
            if isinstance(request, Status):
                self._reply(message.route, self._status(request.id))
            else:
                self._trust.check(message.sender)
                self._reload(message.route, request)
        except JetselError as error:
            self._refuse(message, frame, error)
        except Exception as error:  # the net at the door: whatever one message breaks, the next is read
            self._refuse(message, frame, unexpected(error, read_id(frame)))
        return None

    def _refuse(self, message: Message, frame: bytes, error: JetselError) -> None:
        self._tally.count(error.code)
        warn_of_limit(error, message.sender.name)
        if self._current.snapshot.config.log.requests:
            log_refusal(read_id(frame), error, message.sender.name)
        self._reply(message.route, failure(read_id(frame), error))

    def _admit(self, message: Message, request: Classify, client: str) -> Job:
        received_s = time.monotonic()
        if len(message.frames) < 2:
            raise BadRequestError("the image is missing: send it as the frame after the JSON")
        if self.is_closed:
            raise ShuttingDownError("the daemon is stopping: send again when it is back")
        if not self._current.is_ready:
            progress = f" ({self._current.progress})" if self._current.progress else ""
            raise LoadingError(f"the models are still loading{progress}: send again in a moment")
        snapshot = self._current.enter()
        load = job = None
        try:
            family = snapshot.family(request.family)
            policy = self._metering.within_budget(family, family.policy_for(request), request)
            floor_ms = family.driver.floor_ms(policy) if request.deadline_ms is not None else 0.0
            data = message.frames[1]
            self._admission.look(Load(client, data.nbytes, 0))  # a client or queue that is full costs no look at images
            measured = measure(data, request.pixels, snapshot.limits, family.decode_px)
            asked = Load(client, data.nbytes, measured.pixels)
            self._admission.admit(asked, request.deadline_ms, floor_ms)
            load = asked
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
            return job
        finally:
            if job is None:  # refused, or broken off for want of memory
                self._current.leave(snapshot)
                if load is not None:
                    self._admission.release(load, None)
