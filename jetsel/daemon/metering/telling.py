"""The meter's state as `status` tells it."""

from __future__ import annotations

from jetsel.daemon.metering.bill import CHOOSER, DECODE
from jetsel.daemon.metering.conditions import words
from jetsel.daemon.metering.metering import Metering
from jetsel.power.sampling.report import Report
from jetsel.wire import BudgetStatus, DroppedRail, PowerStatus, Sampling


def power_status(metering: Metering) -> PowerStatus:
    """Return all that is known of power, and of what was taken of it since the start."""
    sampler, accounts, budget = metering.sampler, metering.accounts, metering.budget
    report = None if sampler is None else sampler.report()
    latest = None if sampler is None else sampler.latest()
    served = metering.served
    return PowerStatus(
        reason=metering.reason,
        total_of=[] if report is None else list(report.total_of),
        watts=None if latest is None else latest[1],
        mean_w=budget.mean_w,
        idle_w=None if metering.idle is None else metering.idle.mean_w,
        idle_reason=metering.idle_reason if metering.reason is None else None,
        sampling=None if report is None else _sampling(report),
        dropped=[] if report is None else [DroppedRail(rail.name, rail.reason) for rail in report.dropped],
        power_mode=metering.facts.power_mode.value,
        out_of_conditions=words(metering.conditions.reasons),
        budget=None if budget.limit_w is None else BudgetStatus(budget.limit_w, budget.level, budget.state),
        models=[] if accounts is None else accounts.models({name: list(f.models) for name, f in served.items()}),
        policies=[]
        if accounts is None
        else accounts.policies({name: family.in_use.calibration for name, family in served.items()}),
        chooser_j=None if accounts is None else accounts.joules(CHOOSER),
        chooser_share=None if accounts is None else accounts.chooser_share(),
        decode_j=None if accounts is None else accounts.joules(DECODE),
    )


def _sampling(report: Report) -> Sampling:
    return Sampling(
        report.achieved_hz, report.jitter_p50_us, report.jitter_p99_us, report.update_period_ms, report.busy
    )
