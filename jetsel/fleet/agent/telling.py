"""One line of usage from the daemon's status: what has changed since the line before, and how the device stands."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping

from msgspec import structs

from jetsel.base.errors import CalibrationError, RepositoryError
from jetsel.fleet.agent.installing import Installer
from jetsel.fleet.agent.remembered import Counts, Remembered
from jetsel.fleet.documents import Plan
from jetsel.fleet.usage import FamilyUsage, Limits, ModelUsage, Usage
from jetsel.policies import installed
from jetsel.policies.calibration import Calibration
from jetsel.wire.status import FamilyStatus, StatusReply
from jetsel.zoo import model_folders, scan


def tell(
    device: str,
    installer: Installer,
    known: Remembered,
    status: StatusReply | None,
    why: str | None,
    before: StatusReply | None,
) -> Usage:
    """Return the next line.

    status: None if the daemon did not answer; why: the reason. before: its status before the canary was asked, by which
    answers are counted; None if it did not answer then.
    """
    line = _standing(device, installer, known, why)
    if status is None:
        return line
    was = known.counts if _same_daemon(known.counts, status) else Counts()
    now = counts_of(status if before is None or before.pid != status.pid else before)
    total, power = status.stages_ms.total if status.stages_ms is not None else None, status.power
    return structs.replace(
        line,
        requests=_since(was.requests, now.requests),
        late=now.late - was.late,
        families=tuple(_family(installer, known, one, was, now) for one in status.families),
        p50_ms=None if total is None else total.p50_ms,
        p95_ms=None if total is None else total.p95_ms,
        energy_j=None if now.energy_j is None else round(now.energy_j - (was.energy_j or 0.0), 3),
        watts=None if power is None else power.watts,
        power_mode=None if power is None else power.power_mode,
        battery_percent=None if power is None or power.battery is None else power.battery.percent,
        memory_mb=status.resident_mb,
    )


def _standing(device: str, installer: Installer, known: Remembered, why: str | None) -> Usage:
    """Return the line without what the daemon reports: plan, limits, storage."""
    plan = _installed(installer)
    config = installer.config
    limits = Limits(
        storage_mb=config.fleet.storage_mb,
        memory_mb=config.fleet.memory_mb,
        budget_w=config.power.budget_w,
        deadline_ms=config.fleet.deadline_ms,
    )
    return Usage(
        device=device,
        series=known.series,
        sequence=known.sequence + 1,
        at_s=round(time.time(), 1),
        plan=plan.serial if plan is not None else 0,
        limits=limits,
        trial=known.waits or known.trial,
        daemon=why,
        storage_used_mb=round(installer.used_bytes() / 1e6, 3),
        storage_free_mb=round(shutil.disk_usage(installer.folder).free / 1e6, 1),
        dropped=known.dropped,
    )


def counts_of(status: StatusReply) -> Counts:
    """Return the counters of a status."""
    answers, judged = status.answers, None if status.power is None else status.power.judged
    return Counts(
        pid=status.pid,
        started_s=time.monotonic() - status.uptime_s,
        requests=status.requests,
        late=0 if answers is None else answers.late,
        answers={family.name: family.answers for family in status.families},
        escalated={family.name: family.escalated for family in status.families},
        by_model={} if answers is None else answers.by_model,
        by_policy={} if answers is None else answers.by_policy,
        runs={family.name: {model.name: model.runs for model in family.models} for family in status.families},
        classes=None if answers is None else answers.by_label,
        energy_j=None if judged is None else judged.measured_j,
    )


def _same_daemon(was: Counts, status: StatusReply) -> bool:
    return was.pid == status.pid and abs(was.started_s - (time.monotonic() - status.uptime_s)) < 5.0


def _family(installer: Installer, known: Remembered, family: FamilyStatus, was: Counts, now: Counts) -> FamilyUsage:
    name, calibration = family.name, _calibration(installer, family.name)
    runs = _since(was.runs.get(name, {}), now.runs.get(name, {}))
    memory_mb = known.memory_mb.get(name, {})
    return FamilyUsage(
        name=name,
        answers=max(0, now.answers.get(name, 0) - was.answers.get(name, 0)),
        escalated=max(0, now.escalated.get(name, 0) - was.escalated.get(name, 0)),
        by_model=_since(was.by_model.get(name, {}), now.by_model.get(name, {})),
        by_policy=_since(was.by_policy.get(name, {}), now.by_policy.get(name, {})),
        models=tuple(
            ModelUsage(
                name=model.name,
                runs=runs.get(model.name, 0),
                p50_ms=model.p50_ms,
                p95_ms=model.p95_ms,
                cost_ms=None if calibration is None else calibration.costs_ms.get(model.name),
                energy_mj=None if calibration is None else calibration.energies_mj.get(model.name),
                memory_mb=memory_mb.get(model.name),
            )
            for model in family.models
        ),
        drift=None if family.drift is None else family.drift.median_index,
        drift_reason="the calibration expects nothing" if family.drift is None else family.drift.reason,
        classes=None if now.classes is None else _since((was.classes or {}).get(name, {}), now.classes.get(name, {})),
    )


def _calibration(installer: Installer, family: str) -> Calibration | None:
    """What was calibrated of a family of the plan here, None where it has none, or was not planned."""
    here = scan(model_folders(installer.config.models)).families.get(family)
    try:
        found = None if here is None else installed.shipped(here.calibration, here.labels.sha256)
        return None if found is None else found.usable()
    except CalibrationError:
        return None


def _installed(installer: Installer) -> Plan | None:
    try:
        return installer.installed()
    except RepositoryError:
        return None


def _since(was: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
    """What each counter rose by, those that did not left out; of one that fell, which began anew, all of it."""
    rose = {name: count - (before if (before := was.get(name, 0)) <= count else 0) for name, count in now.items()}
    return {name: count for name, count in rose.items() if count}
