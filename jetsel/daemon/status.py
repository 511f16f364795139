"""The state of the daemon, as `status` tells it."""

from __future__ import annotations

import os
import time
from pathlib import Path

from jetsel import __version__
from jetsel.base.resources import resident_mb
from jetsel.daemon.admission import Admission
from jetsel.daemon.metering.metering import Metering, words
from jetsel.daemon.port import Port
from jetsel.daemon.snapshot import Current
from jetsel.daemon.tally import Tally
from jetsel.engines import Backends, HostReport
from jetsel.power.integration import FEWEST
from jetsel.wire import PROTOCOL_VERSION, StatusReply
from jetsel.wire.power import DroppedRail, EstimatesJudged, PowerStatus
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
    config: Path | None,
) -> StatusReply:
    """Put together what each part of the daemon knows. config: the file that a reload reads."""
    snapshot = current.snapshot
    return StatusReply(
        v=PROTOCOL_VERSION,
        id=request_id,
        state=current.state,
        version=__version__,
        pid=os.getpid(),
        instance=tally.instance,
        uptime_s=round(time.monotonic() - tally.started_s, 3),
        endpoints=port.endpoints,
        default_family=snapshot.default_family,
        families=[family.status(*tally.of_family(name)) for name, family in snapshot.families.items()],
        broken=snapshot.broken,
        requests=tally.outcomes(),
        lost_replies=port.lost_replies,
        resident_mb=resident_mb(),
        progress=current.progress,
        power=_power(metering),
        queue=queue,
        stages_ms=tally.stages_ms(),
        hosts=[_host(backend, report) for backend, report in backends.hosts().items()],
        reloads=tally.reloads(),
        last_reload=tally.last_reload(),
        config=None if config is None else str(config),
        answers=tally.answers(class_counts=snapshot.config.observe.class_counts),
        recent=tally.recent(snapshot.config.observe.recent_answers),
        edge=None if snapshot.edge is None else snapshot.edge.status(),
        max_image_mb=port.max_image_mb,
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


def _power(metering: Metering) -> PowerStatus:
    """Return all that is known of power, and of what was taken of it since the start."""
    sampler, estimates, facts = metering.sampler, metering.estimates, metering.facts
    return PowerStatus(
        reason=metering.reason,
        total_of=[] if sampler is None else list(sampler.total_of),
        watts=None if sampler is None else sampler.watts(),
        mean_w=metering.budget.mean_w,
        idle_w=None if metering.idle is None else metering.idle.mean_w,
        idle_reason=None if metering.idle is not None else metering.reason or metering.idle_reason,
        rate_hz=None if sampler is None else sampler.achieved_hz(),
        dropped=[] if sampler is None else [DroppedRail(rail.name, rail.reason) for rail in sampler.dropped],
        power_mode=facts.power_mode.value,
        out_of_conditions=words(metering.conditions.reasons),
        budget=metering.budget.status,
        models=estimates.models(),
        policies=estimates.policies(),
        chooser_j=estimates.chooser_j(),
        chooser_share=estimates.chooser_share(),
        judged=_judged(metering),
        rails_w={} if sampler is None else sampler.rails_w(),
        jetpack=facts.jetpack.value,
        gpu_load=facts.gpu_load.value,
        temperatures_c=facts.zones_c or None,
        battery=metering.battery,
    )


def _judged(metering: Metering) -> EstimatesJudged:
    """Return what the estimates add up to beside what was measured; a ratio if idle power's error leaves one."""
    estimated_j, answers, without = metering.estimates.totals()
    above, idle = metering.above_idle, metering.idle
    found_j = above.energy_j if above.new_values >= FEWEST else None
    half_j = None if found_j is None or idle is None else idle.half_width_w * above.known_s
    ratio = None
    if found_j is not None and half_j is not None and found_j > half_j and estimated_j > 0:
        ratio = found_j / estimated_j
    return EstimatesJudged(found_j, half_j, above.known_s, estimated_j, answers, without, ratio)
