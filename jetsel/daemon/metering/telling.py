"""The meter's state as `status` tells it."""

from __future__ import annotations

from jetsel.daemon.metering.conditions import words
from jetsel.daemon.metering.metering import Metering
from jetsel.power.integration import FEWEST
from jetsel.wire.power import BudgetStatus, DroppedRail, EstimatesJudged, PowerStatus


def power_status(metering: Metering) -> PowerStatus:
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
        budget=budget_status(metering),
        models=estimates.models(),
        policies=estimates.policies(),
        chooser_j=estimates.chooser_j(),
        chooser_share=estimates.chooser_share(),
        judged=_judged(metering),
        jetpack=facts.jetpack.value,
        gpu_load=facts.gpu_load.value,
        temperatures_c=facts.zones_c or None,
    )


def budget_status(metering: Metering) -> BudgetStatus | None:
    """Return the power budget and what it does now, None where there is none."""
    budget = metering.budget
    return None if budget.limit_w is None else BudgetStatus(budget.limit_w, budget.level, budget.state)


def _judged(metering: Metering) -> EstimatesJudged:
    """Return what the estimates add up to beside what was measured; a ratio where idle power's error leaves one."""
    estimated_j, answers, without = metering.estimates.totals()
    above, idle = metering.above_idle, metering.idle
    found_j = above.energy_j if above.new_values >= FEWEST else None
    half_j = None if found_j is None or idle is None else idle.half_width_w * above.known_s
    ratio = None
    if found_j is not None and half_j is not None and found_j > half_j and estimated_j > 0:
        ratio = found_j / estimated_j
    return EstimatesJudged(found_j, half_j, above.known_s, estimated_j, answers, without, ratio)
