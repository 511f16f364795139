"""Releases plans in waves, each after the reports of the earlier waves show no loss."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import msgspec
from msgspec import structs

from jetsel.addons.fleet.documents import MAX_SERIAL, ROLLOUT, Plan, Rollout, RolloutDevice
from jetsel.addons.fleet.manager.devices import Device, ServedPlan
from jetsel.addons.fleet.manager.planning import Proposal, read_plans
from jetsel.addons.fleet.publishing import read_rollout, write_plan
from jetsel.addons.fleet.signing import public_key, sign
from jetsel.addons.fleet.storage import Storage
from jetsel.base.errors import ConfigError, RepositoryError
from jetsel.base.files import repair_of
from jetsel.base.files import replace as replace_file


@dataclass(frozen=True)
class RollOutTolerance:
    """Tolerance of a roll-out. failed: share of devices that may refuse the plan or roll it back.

    errors: allowed rise of the share of failed requests. slower: allowed factor of the 95th percentile of the latency.
    Both compare the same devices' lines under the new plan and before.
    """

    failed: float = 0.0
    errors: float = 0.01
    slower: float = 1.5


@dataclass(frozen=True)
class RollOutStep:
    """Result of a call. released: devices whose plan was written by it. waiting, against: reasons, in words."""

    rollout: Rollout
    released: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    against: tuple[str, ...] = ()

    @property
    def is_done(self) -> bool:
        """Whether every device has its plan."""
        return self.rollout.released == len(self.rollout.waves) and not self.waiting and not self.against


class RolloutManager:
    """The roll-out of a repository, which holds its signed state; one manager at a time may continue it.

    Anybody who may write to the repository could restore an earlier signed state, and so undo a stop. Therefore this
    machine also keeps the last serial, and rejects earlier states.
    """

    def __init__(self, storage: Storage, keys: Sequence[str], trusted: Collection[str], serials: Path) -> None:
        """keys: private keys to sign with. trusted: public keys that may have signed, besides theirs.

        serials: the file with the last serial of each repository; it may not exist yet.
        """
        self._storage, self._keys, self._serials = storage, keys, serials
        self._address = storage.address("").rstrip("/")
        self._trusted = {*trusted, *map(public_key, keys)}

    def begin(self, proposals: Sequence[Proposal], devices: Mapping[str, Device], waves: str) -> Rollout:
        """Write the state of a new roll-out without released waves. Raises RepositoryError if another is under way."""
        old = self._read()
        if old is not None and old.stopped is None and old.released < len(old.waves):
            raise RepositoryError("a roll-out is under way: go on with it, or run `jetsel fleet stop` first")
        plans = read_plans(self._storage, self._trusted)
        changing = [one for one in proposals if one.changes]
        if not changing:
            raise RepositoryError("the proposals change no device: there is nothing to roll out")
        rolled = []
        for one in sorted(changing, key=lambda one: hashlib.sha256(one.device.encode()).digest()):
            plan = plans.get(one.device)
            last = 0 if plan is None else plan.serial
            if last != one.serial:
                raise RepositoryError(f"the plan of {one.device} has changed since the proposal: plan again")
            serial = max(last, _reported_serial(devices.get(one.device))) + 1
            new = Plan(device=one.device, serial=serial, families=one.families, because=one.because)
            rolled.append(RolloutDevice(plan=new, before=() if plan is None else plan.families))
        return self._write(Rollout(devices=tuple(rolled), waves=waves_of(waves, len(rolled))))

    def advance(self, devices: Mapping[str, Device], allowed: RollOutTolerance) -> RollOutStep:
        """Release the next wave if the earlier ones are good; raises RepositoryError if no roll-out is under way."""
        rollout = self._read()
        if rollout is None or rollout.stopped is not None:
            why = "there is none" if rollout is None else f"it was stopped: {rollout.stopped}"
            raise RepositoryError(f"no roll-out is under way, {why}: begin one with --plans FILE")
        step = judge_rollout(rollout, devices, allowed)
        if not step.waiting and not step.against and rollout.released < len(rollout.waves):
            step = replace(step, rollout=self._write(structs.replace(rollout, released=rollout.released + 1)))
        plans = read_plans(self._storage, self._trusted)
        released = () if step.against else step.rollout.released_devices
        # New ones, or left by a killed call.
        unwritten = [one for one in released if _present_serial(plans, one) < one.plan.serial]
        for one in unwritten:
            write_plan(self._storage, one.plan, self._keys)
        waiting = (*step.waiting, *(f"{one.plan.device} has not reported yet" for one in unwritten))
        return replace(step, released=tuple(one.plan.device for one in unwritten), waiting=waiting)

    def stop(self, why: str, *, revert: bool) -> list[str]:
        """Release no further wave. revert: restore the previous families. Return the devices with a new plan."""
        rollout = self._read()
        if rollout is None:
            raise RepositoryError("there is no roll-out to stop: see jetsel fleet status")
        self._write(structs.replace(rollout, stopped=why))
        if not revert:
            return []
        plans, changed = read_plans(self._storage, self._trusted), []
        for one in rollout.released_devices:
            if one.before and _present_serial(plans, one) == one.plan.serial:
                back = Plan(device=one.plan.device, serial=one.plan.serial + 1, families=one.before, because=why)
                write_plan(self._storage, back, self._keys)
                changed.append(back.device)
        return changed

    def _read(self) -> Rollout | None:
        """Return the last roll-out; raises RepositoryError if this machine has seen a later state of it."""
        rollout, last = read_rollout(self._storage, self._trusted), self._read_serials().get(self._address, 0)
        if rollout is not None and rollout.serial < last:
            raise RepositoryError(
                f"{ROLLOUT}: its serial is {rollout.serial}, and this machine has seen {last}: somebody put an earlier "
                f"state back. Restore the file; if the repository was made anew, remove {self._serials}"
            )
        if rollout is not None and rollout.serial > last:
            self._save_serial(rollout.serial)
        return rollout

    def _write(self, rollout: Rollout) -> Rollout:
        old = self._read()
        serial = max(0 if old is None else old.serial, self._read_serials().get(self._address, 0)) + 1
        rollout = structs.replace(rollout, serial=serial)
        self._storage.write(ROLLOUT, sign(rollout, self._keys))
        self._save_serial(serial)
        return rollout

    def _read_serials(self) -> dict[str, int]:
        try:
            return msgspec.json.decode(self._serials.read_bytes(), type=dict[str, int])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as fault:
            raise RepositoryError(f"{self._serials}: cannot be read ({fault}): restore it, or remove it") from fault

    def _save_serial(self, serial: int) -> None:
        try:
            replace_file(self._serials, msgspec.json.encode({**self._read_serials(), self._address: serial}))
        except OSError as fault:
            raise RepositoryError(
                f"{self._serials}: not written ({fault.strerror}): {repair_of(fault)}, and run the command again"
            ) from fault


def _reported_serial(device: Device | None) -> int:
    """Return the highest serial that a device reports, if it is plausible, else 0.

    A stolen key may have signed the highest serial of all, or the report is nonsense; a next serial must exist.
    """
    if device is None:
        return 0
    reported = [device.line.plan, 0 if device.line.trial is None else device.line.trial.serial]
    return max((serial for serial in reported if serial <= MAX_SERIAL // 2), default=0)


def judge_rollout(rollout: Rollout, devices: Mapping[str, Device], allowed: RollOutTolerance) -> RollOutStep:
    """Judge a roll-out by its devices' reports: for which devices it waits, and the reasons against continuing it."""
    waiting, failed, changes = [], [], []
    for one in rollout.released_devices:
        name, device = one.plan.device, devices.get(one.plan.device)
        trial = None if device is None else device.line.trial
        if device is None or trial is None or trial.serial != one.plan.serial or trial.outcome == "waiting":
            waiting.append(
                f"{name}: {trial.reason}" if trial is not None and trial.reason else f"{name} has not reported yet"
            )
        elif trial.outcome != "installed":
            failed.append(f"{name}: {trial.outcome}: {trial.reason}")
        else:
            before = [served for plan, served in device.served.items() if plan != one.plan.serial]
            after = [served for plan, served in device.served.items() if plan == one.plan.serial]
            changes.append((_combined(before), _combined(after)))
    against = failed if len(failed) > allowed.failed * len(rollout.released_devices) else []
    return RollOutStep(rollout, (), tuple(waiting), (*against, *_degradations(changes, allowed)))


def _combined(served: Sequence[ServedPlan]) -> ServedPlan:
    """Return several plans of one device as one; p95_ms: the median."""
    times_ms = [one.p95_ms for one in served if one.p95_ms and one.p95_ms > 0]
    requests, failed = sum(one.requests for one in served), sum(one.failed for one in served)
    return ServedPlan(requests, failed, median(times_ms) if times_ms else None)


def _degradations(changes: Sequence[tuple[ServedPlan, ServedPlan]], allowed: RollOutTolerance) -> list[str]:
    """Return what has become worse on the devices that had requests both before and after."""
    compared = [(before, after) for before, after in changes if before.requests and after.requests]
    if not compared:
        return []
    reasons = []
    if (rise := _largest_rise(compared)) > allowed.errors:
        reasons.append(f"requests fail more often by {100 * rise:.1f} points")
    ratios = [after.p95_ms / before.p95_ms for before, after in compared if before.p95_ms and after.p95_ms]
    slower = median(sorted(ratios)[1:] or ratios or [0.0])  # without the device that hides most
    if slower > allowed.slower:
        reasons.append(f"the 95th percentile of the latency is {slower:.2f} times what it was")
    return reasons


def _largest_rise(changes: Sequence[tuple[ServedPlan, ServedPlan]]) -> float:
    """Return the rise of the share of failed requests, without the device that hides most of it.

    So no single device can keep a bad roll-out going.
    """
    counts = [[count for served in pair for count in (served.failed, served.requests)] for pair in changes]
    total = [sum(column) for column in zip(*counts, strict=True)]  # exact integers, whatever a device reports
    rises: list[float] = []
    for device_counts in counts:
        others = [of_all - one for of_all, one in zip(total, device_counts, strict=True)] if len(counts) > 1 else total
        rises.append(others[2] / others[3] - others[0] / others[1])
    return max(rises)


def _present_serial(plans: Mapping[str, Plan], one: RolloutDevice) -> int:
    plan = plans.get(one.plan.device)
    return 0 if plan is None else plan.serial


def waves_of(text: str, devices: int) -> tuple[int, ...]:
    """Return the number of devices after each wave; raises ConfigError if the text is invalid."""
    try:
        counts = [
            max(1, int(float(part[:-1]) / 100 * devices)) if part.endswith("%") else min(int(part), devices)
            for part in text.split(",")
        ]
    except ValueError:
        counts = []
    if not counts or not text.endswith("100%") or counts != sorted(counts) or counts[0] < 1:
        raise ConfigError(f"--waves {text}: give counts or shares of the devices that rise to 100%, as in 1,10%,100%")
    return tuple(dict.fromkeys(counts))
