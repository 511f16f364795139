"""Builds the reply to `status`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from jetsel import __version__
from jetsel.base.process import resident_mb
from jetsel.daemon.admission import Admission
from jetsel.daemon.family import ServedFamily
from jetsel.daemon.metering import Metering, reason_texts
from jetsel.daemon.port import Port
from jetsel.daemon.snapshot import CurrentSnapshot
from jetsel.daemon.tally import Tally
from jetsel.engines import Backends
from jetsel.power.integration import FEWEST_VALUES
from jetsel.wire import PROTOCOL_VERSION, StatusReply
from jetsel.wire.counts import Histogram
from jetsel.wire.power import EstimatesJudged, PowerStatus
from jetsel.wire.status import (
    FamilyStatus,
    FrontPoint,
    FrontStatus,
    ModelStatus,
    OperatingPoint,
    PromiseStatus,
    QueueStatus,
)


@dataclass(frozen=True)
class StatusReporter:
    """Builds the reply from the daemon's parts. locate: returns the path of the configuration, None without one."""

    current: CurrentSnapshot
    tally: Tally
    admission: Admission
    port: Port
    metering: Metering
    backends: Backends
    locate: Callable[[], Path | None]

    def reply(self, request_id: str, not_begun: int) -> StatusReply:
        """Collect the state of each part. not_begun: number of admitted requests that no worker has begun."""
        current, tally, port = self.current, self.tally, self.port
        snapshot, config = current.snapshot, self.locate()
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
            families=[family_status(family, *tally.family_counts(name)) for name, family in snapshot.families.items()],
            broken=snapshot.broken,
            requests=tally.outcomes(),
            lost_replies=port.lost_replies,
            resident_mb=resident_mb(),
            progress=current.progress,
            power=_power(self.metering),
            queue=self._queue(not_begun, snapshot.workers),
            hosts=self.backends.hosts(),
            reloads=tally.reloads(),
            last_reload=tally.last_reload(),
            config=None if config is None else str(config),
            answers=tally.answers(_runs(snapshot.families), class_counts=snapshot.config.observe.class_counts),
            recent=tally.recent(snapshot.config.observe.recent_answers),
            edge=None if snapshot.edge is None else snapshot.edge.status(),
            max_image_mb=port.max_image_mb,
        )

    def _queue(self, not_begun: int, workers: int) -> QueueStatus:
        admission, limits, in_queue = self.admission, self.admission.limits, self.admission.in_queue
        waiting = min(not_begun, in_queue)
        return QueueStatus(
            waiting=waiting,
            working=in_queue - waiting,
            workers=workers,
            bytes=admission.queued_bytes,
            pixels=admission.queued_pixels,
            most_requests=limits.queue_requests,
            most_bytes=round(limits.queue_mb * 1e6),
        )


def family_status(family: ServedFamily, answers: int, escalated: int) -> FamilyStatus:
    """Return the state of one family. answers: their number. escalated: those for which more than one model ran."""
    in_use, defaults, calibration = family.in_use, family.defaults, family.in_use.calibration
    promises, points = family.promises.of_policy(defaults.policy), None
    if calibration is not None:
        points = [OperatingPoint(name, one["top1"], one["mean_ms"]) for name, one in calibration.figures.items()]
    return FamilyStatus(
        name=family.name,
        classes=len(family.on_disk.labels.names),
        models=[_model(family, name) for name in family.models],
        policies=list(family.policies),
        default_policy=defaults.policy,
        because=defaults.because,
        fallback=defaults.fallback if defaults.on_doubt == "use" else None,
        calibration=str(in_use),
        objective=family.objective,
        answers=answers,
        escalated=escalated,
        calibration_identity=in_use.identity,
        drift=None if family.drift is None else family.drift.status(),
        operating_points=points,
        wrong_at_most=family.promises.wrong_at_most,
        promises=[] if promises is None else [PromiseStatus(one.wrong_at_most, one.answered) for one in promises.kept],
        front=_front(family),
        not_calibrated=in_use.unknown(family.models),
    )


def _front(family: ServedFamily) -> FrontStatus | None:
    """Return the operating points and how often each answered; None if the default policy has none."""
    front = family.front
    if front is None or front.points[0].policy.name != family.defaults.policy:
        return None
    used = family.points_used
    answers = used.answers()
    points = [
        FrontPoint(one.policy.name, one.accuracy, one.calibrated_ms, one.energy_mj, answers.get(one.policy.name, 0))
        for one in front.points
    ]
    return FrontStatus(points, used.last_point, front.points[front.floor].policy.name, round(used.cheapest_s(), 3))


def _runs(families: Mapping[str, ServedFamily]) -> dict[str, dict[str, Histogram]]:
    """Return the times of the models that have run, by family and model."""
    runs: dict[str, dict[str, Histogram]] = {}
    for name, family in families.items():
        for model, queue in family.driver.queues.items():
            if queue.times.counts()[0]:
                runs.setdefault(name, {})[model] = queue.times.histogram()
    return runs


def _model(family: ServedFamily, name: str) -> ModelStatus:
    queue = family.driver.queues[name]
    runs, escalations = queue.times.counts()
    return ModelStatus(
        name=name,
        version=family.models[name].manifest.version,
        state=queue.state,
        reason=None if queue.state == "loading" else queue.reason,
        load_ms=None if queue.load_ms is None else round(queue.load_ms, 3),
        runs=runs,
        backend=family.backends[name],
        escalations=escalations,
    )


def _power(metering: Metering) -> PowerStatus:
    """Return the state of the sensors, and the energies since the start."""
    sampler, estimates, facts = metering.sampler, metering.estimates, metering.facts
    return PowerStatus(
        reason=metering.reason,
        total_of=[] if sampler is None else list(sampler.total_of),
        watts=None if sampler is None else sampler.watts(),
        mean_w=metering.budget.mean_w,
        idle_w=None if metering.idle is None else metering.idle.mean_w,
        idle_reason=None if metering.idle is not None else metering.reason or metering.idle_reason,
        dropped=[] if sampler is None else list(sampler.dropped),
        power_mode=facts.power_mode.value,
        out_of_conditions=reason_texts(metering.conditions.reasons),
        budget=metering.budget.status,
        models=estimates.models(),
        policies=estimates.policies(),
        chooser_j=estimates.chooser.known_j,
        judged=_compare_energies(metering),
        rails_w={} if sampler is None else sampler.rails_w(),
        jetpack=facts.jetpack.value,
        gpu_load=facts.gpu_load.value,
        temperatures_c=facts.zones_c or None,
        battery_percent=facts.battery_percent,
    )


def _compare_energies(metering: Metering) -> EstimatesJudged:
    """Compare estimated with measured energies above idle power; the ratio is None if idle power's error hides it."""
    estimated_j, answers, without = metering.estimates.totals()
    above, idle = metering.above_idle, metering.idle
    measured_j = above.energy_j if above.new_values >= FEWEST_VALUES else None
    error_j = None if measured_j is None or idle is None else idle.half_width_w * above.known_s
    ratio = None
    if measured_j is not None and error_j is not None and measured_j > error_j and estimated_j > 0:
        ratio = measured_j / estimated_j
    return EstimatesJudged(measured_j, error_j, above.known_s, estimated_j, answers, without, ratio)
