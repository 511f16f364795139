"""How each device stands: its plan, its limits, and what is wrong with it or with what it tells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct

from jetsel.fleet.documents import Plan
from jetsel.fleet.manager.devices import Device
from jetsel.fleet.usage import Limits, Trial

PERIODS = 3.0
CLOCK_S = 3600.0  # and two periods: by how much a clock may differ, since a line waits until it can be sent
_PERIOD_S = 86_400.0  # of a device that has told once


class Written(NamedTuple):
    """A plan in the repository, and when the storage got it, in seconds since 1970."""

    plan: Plan
    written_s: float


class DeviceStatus(Struct, frozen=True, kw_only=True):
    """One device. seen_s: since its last upload, by the storage's clock, None where it never told.

    clock_s: by how much its own clock is ahead of that, None where they agree. planned, installed: serials, 0 for none.
    drift: of the family that drifts most. missing: lines that never came. faults: in words.
    """

    device: str
    seen_s: float | None = None
    clock_s: float | None = None
    planned: int = 0
    installed: int = 0
    trial: Trial | None = None
    limits: Limits | None = None
    battery_percent: float | None = None
    drift: float | None = None
    energy_j: float | None = None
    watts: float | None = None
    missing: int = 0
    dropped: int = 0
    faults: tuple[str, ...] = ()


def statuses(
    devices: Mapping[str, Device], plans: Mapping[str, Written], now_s: float, periods: float = PERIODS
) -> list[DeviceStatus]:
    """Return every device that has told, or has a plan. periods: of silence, after which that is a fault."""
    return [
        _status(name, devices.get(name), plans.get(name), now_s, periods)
        for name in sorted(devices.keys() | plans.keys())
    ]


def _status(name: str, device: Device | None, plan: Written | None, now_s: float, periods: float) -> DeviceStatus:
    planned = 0 if plan is None else plan.plan.serial
    if device is None:
        return DeviceStatus(device=name, planned=planned, faults=("it has a plan, and never told anything",))
    line, period_s = device.line, device.period_s or _PERIOD_S
    ahead_s = line.at_s - device.uploaded_s
    return DeviceStatus(
        device=name,
        seen_s=now_s - device.uploaded_s,
        clock_s=ahead_s if abs(ahead_s) > CLOCK_S + 2 * period_s else None,
        planned=planned,
        installed=line.plan,
        trial=line.trial,
        limits=line.limits,
        battery_percent=line.battery_percent,
        drift=max((one.drift for one in line.families if one.drift is not None), default=None),
        energy_j=line.energy_j,
        watts=line.watts,
        missing=device.missing,
        dropped=line.dropped,
        faults=tuple(_faults(device, plan, ahead_s, period_s, now_s, periods)),
    )


def _faults(
    device: Device, plan: Written | None, ahead_s: float, period_s: float, now_s: float, periods: float
) -> Iterator[str]:
    line, trial = device.line, device.line.trial
    if line.daemon is not None:
        yield f"its daemon does not answer: {line.daemon}"
    if now_s - device.uploaded_s > periods * period_s:
        yield f"not heard of for {(now_s - device.uploaded_s) / period_s:.1f} periods"
    if abs(ahead_s) > CLOCK_S + 2 * period_s:
        yield f"its clock is {abs(ahead_s) / 86400:.1f} days {'ahead' if ahead_s > 0 else 'behind'}"
    if device.missing:
        yield f"{device.missing} lines are missing, {device.missing_first} is the first"
    if line.dropped:
        yield f"{line.dropped} lines were lost before they could be sent"
    if trial is not None and trial.outcome != "installed" and (plan is not None or trial.outcome != "waiting"):
        yield f"plan {trial.serial} {trial.outcome}: {trial.reason}"
    taken = max(line.plan, 0 if trial is None else trial.serial)
    if plan is not None and plan.plan.serial > taken and device.uploaded_s > plan.written_s + period_s:
        yield f"plan {plan.plan.serial} was not taken"
