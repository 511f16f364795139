"""Forecast how long each model would take for a request, on this device or on the edge server."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from jetsel.artefact.calibration import Calibration
from jetsel.policies.policy import Outlook
from jetsel.runtime.model_queue import ModelQueue, SentImage

ON_DEVICE_ONLY = "the image may not leave the device"
RELATIVE_DEVIATION = 0.1  # standard deviation divided by the mean: of a model that has not run yet, and of a load


class Allowance(NamedTuple):
    """Mean time (ms) and mean energy (mJ) that the models of a request may take."""

    ms: float = math.inf
    mj: float = math.inf


UNLIMITED = Allowance()


def outlook(
    queues: Mapping[str, ModelQueue], deadline_s: float, now_s: float, sent: SentImage, allowed: Allowance = UNLIMITED
) -> Outlook:
    """Return the forecast from which a request's policy chooses models: times, and why some models cannot run now.

    A model without a known time is left out. The network time of the edge server's models depends on the image's bytes.
    deadline_s: on the clock of now_s, infinite if there is none. allowed: see Outlook.allowed_ms and allowed_mj.
    """
    models_ms: dict[str, tuple[float, float]] = {}
    images_ms: dict[str, float] = {}
    unavailable: dict[str, str] = {}
    traffic_kb: dict[str, float] = {}
    network_ms = None
    for name, queue in queues.items():
        if (reason := ON_DEVICE_ONLY if sent.stays_here and queue.runner is not None else queue.reason) is not None:
            unavailable[name] = reason
        elif queue.runner is not None:
            remote = queue.runner.forecast(sent, now_s)
            if remote.traffic_kb is not None:
                traffic_kb[name] = remote.traffic_kb
            if remote.run_ms is None or remote.network_ms is None:
                continue
            network_ms = network_ms or remote.network_ms
            # Outlook has one network time, the first model's: a difference from it counts as time of this model's run.
            models_ms[name] = remote.run_ms[0] + remote.network_ms[0] - network_ms[0], remote.run_ms[1]
        elif (time_ms := _local_time_ms(queue, now_s)) is not None:
            models_ms[name] = time_ms
            images_ms[name] = queue.expected_ms(0.5, now_s) or time_ms[0]  # the median does not include a due load
    budget_ms = (deadline_s - now_s) * 1e3
    return Outlook(budget_ms, models_ms, network_ms, unavailable, traffic_kb, images_ms, *allowed)


def load_for_later_requests(queues: Mapping[str, ModelQueue], models: Sequence[str], forecast: Outlook) -> None:
    """Begin to load one of a policy's models: the last in `queues` that only its load keeps from this deadline.

    Models whose load failed are loaded again. Otherwise requests with deadlines would never get these models.
    """
    for name in models:
        if name in queues and queues[name].reason is not None:
            queues[name].request_load()
    late_ms = {name: sum(times) - forecast.budget_ms for name, times in forecast.models_ms.items() if name in models}
    late_by_load = [name for name in queues if 0 < late_ms.get(name, 0.0) <= queues[name].load_due_ms]
    if late_by_load:
        queues[late_by_load[-1]].request_load()


def _local_time_ms(queue: ModelQueue, now_s: float) -> tuple[float, float] | None:
    """Return mean and deviation in ms of one run on this device, including a load that is due; None if unknown.

    The deviation is at least the distance from the mean to the 95th percentile, because times have a long tail.
    """
    time_ms = queue.times.run_time.mean_and_sd_ms(now_s, queue.prior_ms)
    slow_ms = queue.expected_ms(0.95, now_s)
    if time_ms is None:
        return None
    tail_ms = time_ms[1] if slow_ms is None else max(time_ms[1], slow_ms - time_ms[0])
    load_ms = queue.load_due_ms
    return time_ms[0] + load_ms, math.hypot(tail_ms, RELATIVE_DEVIATION * load_ms)


def set_priors(queues: Mapping[str, ModelQueue], calibration: Calibration | None) -> None:
    """Set each model's prior: its time from the calibration, which forecasts use until the model has run here."""
    if calibration is None:
        return
    for name, cost_ms in calibration.costs_ms.items():
        if name in queues and math.isfinite(cost_ms):
            queues[name].prior_ms = (cost_ms, RELATIVE_DEVIATION * cost_ms)
