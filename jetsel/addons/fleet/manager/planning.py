"""Plans: which models each device should hold, compared with its present plan, and why."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from msgspec import Struct

from jetsel.addons.fleet.documents import PLANS, Plan, PlannedFamily
from jetsel.addons.fleet.manager.demands import DeviceDemand, demand_of, options_of
from jetsel.addons.fleet.manager.devices import Device
from jetsel.addons.fleet.manager.published import PublishedFamily, read_published
from jetsel.addons.fleet.manager.solving import Capacity, CascadeOptions, Selection, solve
from jetsel.addons.fleet.reading import read_index
from jetsel.addons.fleet.signing import unwrap
from jetsel.addons.fleet.storage import Storage
from jetsel.base.errors import RepositoryError

_CLEARLY = 1e-4


class ExpectedResult(Struct, frozen=True):
    """Expected result of a choice of models.

    accuracy: share (0 to 1) of all answers that are right and in time; see options_of. mean_ms: mean time of an answer,
    in ms. energy_mj: mean energy of an answer above idle power, in mJ; None if unknown. cascades: family -> the models
    of its cascade.
    """

    accuracy: float
    mean_ms: float
    energy_mj: float | None
    cascades: dict[str, tuple[str, ...]]


class Proposal(Struct, frozen=True, kw_only=True):
    """Proposal for one device. serial: of its present plan, 0 for none. families: to hold; none if nothing fits.

    before, after: with its present models, and with the proposed ones; None if there are none. binds: accuracy expected
    without each limit. dropped: models to remove, and why. notes: unknown values and problems.
    """

    device: str
    serial: int
    families: tuple[PlannedFamily, ...] = ()
    changes: bool = False
    before: ExpectedResult | None = None
    after: ExpectedResult | None = None
    binds: dict[str, float] = {}
    dropped: dict[str, str] = {}
    notes: tuple[str, ...] = ()

    @property
    def because(self) -> str:
        """The reason in one sentence."""
        if self.after is None:
            return "; ".join(self.notes)
        was = "an unknown share" if self.before is None else f"{self.before.accuracy:.3f}"
        without = "".join(f"; without the limit of {name}: {share:.3f}" for name, share in self.binds.items())
        expected = f"{self.after.accuracy:.3f} of its answers are expected to be right and in time"
        return f"{expected}, {was} with its present models{without}"


@dataclass(frozen=True)
class _Solution:
    families: tuple[PlannedFamily, ...]  # none if nothing fits
    before: ExpectedResult | None
    after: ExpectedResult | None
    keeps: bool  # the present models fit, and are about as good
    binds: dict[str, float]
    stops: str | None  # limit under which nothing fits


class Planner:
    """Plans the devices of one repository; equal ones are solved once. solved: results by demand."""

    def __init__(
        self, storage: Storage, trusted: Collection[str], *, deadline_ms: float | None = None, gain: float = 0.005
    ) -> None:
        """deadline_ms: of devices that report none. Raises RepositoryError.

        gain: least gain of expected accuracy that justifies a new plan: repeated measurements of times differ by more.
        """
        self._storage, self._trusted = storage, trusted
        self._deadline_ms, self._gain = deadline_ms, gain
        index, _ = read_index(storage, trusted)
        self._entries = {entry.family: entry for entry in index.bundles}
        self.plans = read_plans(storage, trusted)
        self._families: dict[str, PublishedFamily] = {}
        self.solved: dict[DeviceDemand, _Solution] = {}

    def propose(self, name: str, device: Device, families: Collection[str] = ()) -> Proposal:
        """Return the proposal for one device. families: to hold; none: its present ones, or else all.

        Raises RepositoryError for a family that cannot be planned.
        """
        plan = self.plans.get(name)
        held = {one.name: tuple(model.name for model in one.models) for one in device.line.daemon.families}
        held |= {one.bundle.family: one.models for one in (() if plan is None else plan.families)}
        chosen_families = families or [*held] or [*self._entries]
        notes = [f"{family} is not published" for family in chosen_families if family not in self._entries]
        published = {family: self._published(family) for family in chosen_families if family in self._entries}
        serial = 0 if plan is None else plan.serial
        if not published:
            return Proposal(device=name, serial=serial, notes=tuple(notes))
        device_demand, unknown = demand_of(device, published, held, self._deadline_ms)
        if device_demand not in self.solved:
            self.solved[device_demand] = self._solve(device_demand)
        solved, notes = self.solved[device_demand], [*notes, *unknown]
        if not solved.families:
            notes.append(f"nothing is planned: the limit of {solved.stops} is too small for any choice of models")
            return Proposal(device=name, serial=serial, before=solved.before, notes=tuple(notes))
        same = plan is not None and {one.bundle for one in plan.families} == {one.entry for one in published.values()}
        kept_families = plan.families if plan is not None and same and solved.keeps else None
        return Proposal(
            device=name,
            serial=serial,
            families=solved.families if kept_families is None else kept_families,
            changes=kept_families is None,
            before=solved.before,
            after=solved.after if kept_families is None else solved.before,
            binds=solved.binds,
            dropped=_removal_reasons(held, solved) if kept_families is None else {},
            notes=tuple(notes),
        )

    def _published(self, family: str) -> PublishedFamily:
        if family not in self._families:
            with tempfile.TemporaryDirectory(prefix="jetsel-") as scratch:
                entry = self._entries[family]
                self._families[family] = read_published(self._storage, entry, self._trusted, Path(scratch))
        return self._families[family]

    def _solve(self, device_demand: DeviceDemand) -> _Solution:
        """Choose each family's cascade, compare with the present models, and find the limits that matter."""
        options = self._options(device_demand, device_demand.deadline_ms)
        chosen = solve(options, device_demand.room)
        options_held = [_usable(one, held) for one, held in zip(options, device_demand.held, strict=True)]
        # What the present models achieve: they are on the device already, so only its time limits them.
        before = _result(device_demand, options_held, solve(options_held, Capacity(busy=device_demand.room.busy)))
        options_of_all_held = [
            _usable(one, held, use_all=True) for one, held in zip(options_held, device_demand.held, strict=True)
        ]
        # Whether exactly the present models fit within all limits, so that the device may keep its plan.
        kept = solve(options_of_all_held, device_demand.room)
        limits = {"storage": "storage_bytes", "memory": "memory_mb", "power": "watts", "time": "busy"}
        if chosen is None:
            # Nothing fits: try each limit without the others, to name those under which nothing fits.
            only_limit = {
                name: replace(Capacity(), **{field: getattr(device_demand.room, field)})
                for name, field in limits.items()
            }
            stops = [name for name, room in only_limit.items() if solve(options, room) is None]
            return _Solution((), before, None, False, {}, " and ".join(stops or limits))
        # How much each limit costs: solve again without it.
        without_limit = {
            name: solve(options, replace(device_demand.room, **{field: None})) for name, field in limits.items()
        }
        if device_demand.deadline_ms is not None:
            without_limit["deadline"] = solve(self._options(device_demand, None), device_demand.room)
        return _Solution(
            families=self._families_to_hold(device_demand, options, chosen),
            before=before,
            after=_result(device_demand, options, chosen),
            keeps=kept is not None and kept.accuracy > chosen.accuracy - self._gain,
            binds={
                name: round(one.accuracy, 4)
                for name, one in without_limit.items()
                if one is not None and one.accuracy > chosen.accuracy + _CLEARLY
            },
            stops=None,
        )

    def _options(self, device_demand: DeviceDemand, deadline_ms: float | None) -> list[CascadeOptions]:
        return [options_of(self._published(demand.family), demand, deadline_ms) for demand in device_demand.demands]

    def _families_to_hold(
        self, device_demand: DeviceDemand, options: Sequence[CascadeOptions], chosen: Selection
    ) -> tuple[PlannedFamily, ...]:
        return tuple(
            PlannedFamily(
                bundle=self._entries[demand.family],
                models=one.models[row],
                cascade=one.models[row],
                accuracy=round(float(one.accuracy[row]) * served, 4),
                mean_ms=round(float(one.ms[row]), 3),
            )
            for demand, one, row, served in zip(device_demand.demands, options, chosen.rows, chosen.served, strict=True)
        )


def read_plans(storage: Storage, trusted: Collection[str]) -> dict[str, Plan]:
    """Return the plan of every device that has one; raises RepositoryError if one cannot be trusted."""
    names = storage.names(PLANS)
    contents = storage.contents(names) if names else {}
    if lost := {*names} - contents.keys():
        raise RepositoryError(f"{min(lost)}: cannot be read: try again when the repository can be reached")
    try:
        plans = [unwrap(content, Plan, trusted, name)[0] for name, content in contents.items()]
    except RepositoryError as fault:
        raise RepositoryError(f"{fault}; or remove it to plan the device anew") from fault
    return {plan.device: plan for plan in plans}


def _usable(options: CascadeOptions, held: Collection[str], *, use_all: bool = False) -> CascadeOptions:
    """Return the cascades that use only the held models, or exactly all of them if `use_all`."""
    fits = set.__eq__ if use_all else set.__le__
    rows = [row for row, models in enumerate(options.models) if fits({*models}, {*held})]
    return options.with_rows(np.array(rows, int))


def _result(
    device_demand: DeviceDemand, options: Sequence[CascadeOptions], choice: Selection | None
) -> ExpectedResult | None:
    if choice is None:
        return None
    chosen = list(zip(device_demand.demands, options, choice.rows, strict=True))
    energies = [one.share * float(one.mj[row]) for _, one, row in chosen if one.mj is not None]
    return ExpectedResult(
        accuracy=round(choice.accuracy, 4),
        mean_ms=round(sum(one.share * float(one.ms[row]) for _, one, row in chosen), 3),
        energy_mj=round(sum(energies), 3) if len(energies) == len(chosen) else None,
        cascades={demand.family: one.models[row] for demand, one, row in chosen},
    )


def _removal_reasons(held: Mapping[str, Sequence[str]], solved: _Solution) -> dict[str, str]:
    """Return why models that the device has are removed."""
    assert solved.after is not None
    limits = ", ".join(solved.binds)
    why = f"within the limit of {limits}, other models are right more often" if limits else "it improves no cascade"
    remaining = solved.after.cascades
    return {
        f"{family}/{name}": why
        for family, names in held.items()
        for name in names
        if name not in remaining.get(family, ())
    }
