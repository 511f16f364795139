"""How the daemon fares, as `status` tells it."""

from __future__ import annotations

import os
import time

from jetsel import __version__
from jetsel.daemon.admission import Admission
from jetsel.daemon.current import Current
from jetsel.daemon.memory import resident_mb
from jetsel.daemon.metering.metering import Metering
from jetsel.daemon.metering.telling import power_status
from jetsel.daemon.port import Port
from jetsel.daemon.tally import Tally
from jetsel.engines import Backends, HostReport
from jetsel.wire import PROTOCOL_VERSION, StatusReply
from jetsel.wire.status import ClientStatus, HostStatus, QueueStatus

CLIENTS = 10  # that are named, of those with requests under way


def status(
    request_id: str,
    current: Current,
    tally: Tally,
    queue: QueueStatus,
    port: Port,
    metering: Metering,
    backends: Backends,
) -> StatusReply:
    """Put together what each part of the daemon knows."""
    snapshot = current.snapshot
    return StatusReply(
        v=PROTOCOL_VERSION,
        id=request_id,
        state=current.state,
        version=__version__,
        pid=os.getpid(),
        uptime_s=round(time.monotonic() - tally.started_s, 3),
        endpoints=port.endpoints,
        default_family=snapshot.default_family,
        families=[family.status(*tally.of_family(name)) for name, family in snapshot.families.items()],
        broken=snapshot.broken,
        requests=tally.outcomes(),
        in_queue=queue.waiting + queue.working,
        queued_bytes=queue.bytes,
        lost_replies=port.lost_replies,
        resident_mb=resident_mb(),
        progress=current.progress,
        power=power_status(metering),
        queue=queue,
        stages_ms=tally.stages_ms(),
        hosts=[_host(backend, report) for backend, report in backends.hosts().items()],
        reloads=tally.reloads(),
        last_reload=tally.last_reload(),
    )


def queue_status(admission: Admission, not_begun: int, workers: int) -> QueueStatus:
    """Return what is in the queue, and what it may hold. not_begun: admitted requests that nobody works on yet."""
    limits, in_queue = admission.limits, admission.in_queue
    waiting, busiest = min(not_begun, in_queue), admission.busiest(CLIENTS)
    return QueueStatus(
        waiting=waiting,
        working=in_queue - waiting,
        workers=workers,
        bytes=admission.queued_bytes,
        pixels=admission.queued_pixels,
        most_requests=limits.queue_requests,
        most_bytes=round(limits.queue_mb * 1e6),
        most_pixels=round(limits.queue_megapixels * 1e6),
        clients=[ClientStatus(name, requests) for name, requests in busiest],
    )


def _host(backend: str, report: HostReport) -> HostStatus:
    ago_s = None if report.last_end_ago_s is None else round(report.last_end_ago_s, 3)
    return HostStatus(backend, report.state, report.reason, report.pid, report.restarts, report.last_end, ago_s)
