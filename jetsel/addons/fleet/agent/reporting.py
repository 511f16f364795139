"""Builds a line of usage from the daemon's status: totals since its start, and the state of the device."""

from __future__ import annotations

import shutil
import time
from contextlib import suppress

from jetsel.addons.fleet.agent.installing import Installer
from jetsel.addons.fleet.agent.remembered import AgentMemory, ReportedTimes
from jetsel.addons.fleet.usage import DaemonUsage, DeviceLimits, FamilyUsage, ModelUsage, Usage
from jetsel.artefact import installed
from jetsel.artefact.calibration import Calibration
from jetsel.base.errors import CalibrationError, RepositoryError
from jetsel.wire.counts import AnswerCounts, Histogram
from jetsel.wire.status import FamilyStatus, StatusReply
from jetsel.zoo import model_folders, scan

LATE = 0.95  # quantile of the reported times


def report(
    device: str, installer: Installer, memory: AgentMemory, status: StatusReply | None, why: str | None, *, canary: bool
) -> Usage:
    """Return the next line.

    status: None if the daemon did not answer, for the reason `why`. canary: whether the agent sent requests in this
    round.
    """
    fleet, plan = installer.fleet, None
    with suppress(RepositoryError):
        plan = installer.installed()
    limits = DeviceLimits(
        storage_mb=fleet.storage_mb,
        memory_mb=fleet.memory_mb,
        budget_w=installer.config.power.budget_w,
        deadline_ms=fleet.deadline_ms,
    )
    return Usage(
        device=device,
        series=memory.series,
        sequence=memory.sequence + 1,
        at_s=round(time.time(), 1),
        plan=plan.serial if plan is not None else 0,
        limits=limits,
        trial=memory.waits or memory.trial,
        daemon=DaemonUsage() if status is None else _daemon_usage(installer, memory, status),
        silence=why,
        canary=canary and status is not None,
        storage_used_mb=round(installer.used_bytes() / 1e6, 3),
        storage_free_mb=round(shutil.disk_usage(installer.folder).free / 1e6, 1),
        dropped=memory.dropped,
    )


def _daemon_usage(installer: Installer, memory: AgentMemory, status: StatusReply) -> DaemonUsage:
    answers, power, measured_j = status.answers, status.power, status.power.judged.measured_j
    before = memory.times if memory.times is not None and memory.times.instance == status.instance else None
    total = answers.stages.get("total", Histogram()).since(None if before is None else before.total)
    return DaemonUsage(
        instance=status.instance,
        requests=status.requests,
        late=answers.late or 0,
        families=tuple(_family_usage(installer, memory, family, answers, before) for family in status.families),
        p95_ms=answers.percentile_ms(total, LATE),
        energy_j=None if measured_j is None else round(measured_j, 3),
        watts=power.watts,
        power_mode=power.power_mode,
        battery_percent=power.battery_percent,
        memory_mb=status.resident_mb,
    )


def reported_times(status: StatusReply) -> ReportedTimes:
    """Return the histograms with which the next line is compared."""
    return ReportedTimes(status.instance, status.answers.stages.get("total", Histogram()), status.answers.runs)


def _family_usage(
    installer: Installer, memory: AgentMemory, family: FamilyStatus, answers: AnswerCounts, before: ReportedTimes | None
) -> FamilyUsage:
    name, calibration = family.name, _calibration(installer, family.name)
    memory_mb = memory.memory_mb.get(name, {})
    earlier = {} if before is None else before.runs.get(name, {})
    runs = {model: times.since(earlier.get(model)) for model, times in answers.runs.get(name, {}).items()}
    return FamilyUsage(
        name=name,
        answers=family.answers or 0,
        escalated=family.escalated or 0,
        by_model=answers.by_model.get(name, {}),
        by_policy=answers.by_policy.get(name, {}),
        models=tuple(
            ModelUsage(
                name=model.name,
                runs=model.runs or 0,
                p95_ms=answers.percentile_ms(runs.get(model.name, Histogram()), LATE),
                cost_ms=None if calibration is None else calibration.costs_ms.get(model.name),
                energy_mj=None if calibration is None else calibration.energy.mean_mj.get(model.name),
                memory_mb=memory_mb.get(model.name),
            )
            for model in family.models
        ),
        drift=None if family.drift is None else family.drift.median_index,
        drift_reason="the calibration has no expected values" if family.drift is None else family.drift.reason,
        classes=None if answers.by_label is None else answers.by_label.get(name, {}),
    )


def _calibration(installer: Installer, family: str) -> Calibration | None:
    """Return the calibration of an installed family, None if it has none, or is not planned."""
    here = scan(model_folders(installer.config.models)).families.get(family)
    try:
        calibration = None if here is None else installed.shipped(here.calibration_folder, here.labels.sha256)
        return None if calibration is None else calibration.usable_calibration()
    except CalibrationError:
        return None
