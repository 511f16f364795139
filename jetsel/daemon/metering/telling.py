"""The meter's state as `status` tells it."""

from __future__ import annotations

from jetsel.daemon.metering.bill import CHOOSER, DECODE
from jetsel.daemon.metering.conditions import words
from jetsel.daemon.metering.metering import Metering
from jetsel.power.machine import Facts
from jetsel.power.sampling.report import Report
from jetsel.wire import BudgetStatus, DroppedRail, PowerStatus, Sampling


def power_status(metering: Metering) -> PowerStatus:
    """Return all that is known of power, and of what was taken of it since the start."""
    sampler, accounts, budget = metering.sampler, metering.accounts, metering.budget
    report = None if sampler is None else sampler.report()
    latest = None if sampler is None else sampler.latest()
    served, facts = metering.served, metering.facts
    return PowerStatus(
        reason=metering.reason,
        total_of=[] if report is None else list(report.total_of),
        watts=None if latest is None else latest[1],
        mean_w=budget.mean_w,
        idle_w=None if metering.idle is None else metering.idle.mean_w,
        idle_reason=_idle_reason(metering),
        sampling=None if report is None else _sampling(report, metering),
        dropped=[] if report is None else [DroppedRail(rail.name, rail.reason) for rail in report.dropped],
        power_mode=facts.power_mode.value,
        out_of_conditions=words(metering.conditions.reasons),
        budget=budget_status(metering),
        models=[] if accounts is None else accounts.models({name: list(f.models) for name, f in served.items()}),
        policies=[]
        if accounts is None
        else accounts.policies({name: family.in_use.calibration for name, family in served.items()}),
        chooser_j=None if accounts is None else accounts.joules(CHOOSER),
        chooser_share=None if accounts is None else accounts.chooser_share(),
        decode_j=None if accounts is None else accounts.joules(DECODE),
        jetpack=facts.jetpack.value,
        gpu_load=facts.gpu_load.value,
        temperatures_c=_temperatures_c(facts),
    )


def _idle_reason(metering: Metering) -> str | None:
    """Return why no idle power is known, None where it is; without a sensor there is nothing else to say."""
    return None if metering.idle is not None else metering.reason or metering.idle_reason


def budget_status(metering: Metering) -> BudgetStatus | None:
    """Return the power budget and what it does now, None where there is none."""
    budget = metering.budget
    return None if budget.limit_w is None else BudgetStatus(budget.limit_w, budget.level, budget.state)


def _temperatures_c(facts: Facts) -> dict[str, float] | None:
    """Return the zones that tell, None where none does."""
    zones = facts.temperatures_c.value or {}
    return {name: zone.value for name, zone in zones.items() if zone.value is not None} or None


def _sampling(report: Report, metering: Metering) -> Sampling:
    return Sampling(
        report.achieved_hz,
        report.jitter_p50_us,
        report.jitter_p99_us,
        report.update_period_ms,
        report.busy,
        None if metering.is_busy else metering.power.idle_rate_hz,
        report.restarts,
    )
