"""Converts a device's reports to the demands that planning needs, rounded so that similar devices are equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jetsel.addons.fleet.manager.devices import Device
from jetsel.addons.fleet.manager.published import PublishedFamily
from jetsel.addons.fleet.manager.solving import Capacity, CascadeOptions

FEWEST_ANSWERS = 100  # fewer answers do not show the shares of classes
LEAST = 1e-6  # ms or mJ: smaller values are no measurement of a run, and have no useful ratios
PLANNED = 0.9  # of the memory limit: a daemon's memory differs by some MB from load to load

Quantity = Literal["cost_ms", "energy_mj", "memory_mb"]


@dataclass(frozen=True)
class Demand:
    """One family on one device; values by model, in the order of PublishedFamily.answers.

    share: of the answers. rate_hz: of requests, None if unknown. late_ms: 95th percentile of a run. classes: share of
    the answers by class number; None: as in the recorded images.
    """

    family: str
    share: float
    rate_hz: float | None
    costs_ms: tuple[float, ...]
    late_ms: tuple[float, ...]
    energies_mj: tuple[float, ...] | None
    memory_mb: tuple[float, ...]
    classes: tuple[tuple[int, float], ...] | None


@dataclass(frozen=True)
class DeviceDemand:
    """All demands of one device; equal ones are planned once. held: the device's present models, for each demand."""

    demands: tuple[Demand, ...]
    held: tuple[tuple[str, ...], ...]
    room: Capacity
    deadline_ms: float | None


def demand_of(
    device: Device,
    families: Mapping[str, PublishedFamily],
    held: Mapping[str, tuple[str, ...]],
    deadline_ms: float | None,
) -> tuple[DeviceDemand, list[str]]:
    """Return a device's demands for these families, and notes on what is unknown.

    held: its models by family. deadline_ms: for a device that reports none; None: no deadline.
    """
    notes: list[str] = []
    total = sum(device.answers.get(name, 0) for name in families)
    if not total:
        notes.append("no traffic is known: all families of the device have the same weight")
    if device.rate_hz is None:
        notes.append("fewer than two reports are known, so there is no request rate: power and time are not limited")
    demands = []
    for name, one in families.items():
        share = device.answers.get(name, 0) / total if total else 1 / len(families)
        demands.append(_demand(device, one, share, families, notes))
    limits = device.line.limits
    memory_mb, watts = _memory_limit_mb(device, notes), _power_limit_w(device, demands, notes)
    room = Capacity(limits.storage_mb * 1e6, memory_mb, watts, busy=1.0)
    most_ms = limits.deadline_ms if limits.deadline_ms is not None else deadline_ms
    return DeviceDemand(tuple(demands), tuple(held.get(name, ()) for name in families), room, most_ms), notes


def _demand(
    device: Device, published: PublishedFamily, share: float, families: Mapping[str, PublishedFamily], notes: list[str]
) -> Demand:
    name, models = published.entry.family, published.answers.models
    takes = device.takes.get(name, {})
    costs_ms = _estimates(device, published, families, "cost_ms")
    if costs_ms is None:
        notes.append(f"{name}: the device reported no times: those of the calibration are used")
        costs_ms = tuple(published.answers.costs_ms[model] for model in models)
    late_ms = [
        max(cost, takes[model].p95_ms or 0.0) if model in takes else cost
        for model, cost in zip(models, costs_ms, strict=True)
    ]
    return Demand(
        family=name,
        share=_rounded(share),
        rate_hz=None if device.rate_hz is None else _rounded(device.rate_hz * share),
        costs_ms=tuple(map(_rounded, costs_ms)),
        late_ms=tuple(map(_rounded, late_ms)),
        energies_mj=_estimates(device, published, families, "energy_mj"),
        memory_mb=_memories(device, published, families, notes),
        classes=_class_shares(device, published, notes),
    )


def _memories(
    device: Device, published: PublishedFamily, families: Mapping[str, PublishedFamily], notes: list[str]
) -> tuple[float, ...]:
    """Return each model's memory as reported, else its file size times the median ratio of reported ones.

    If none is reported the ratio is 1, the least that a model takes.
    """
    known_mb, ratio = _reports(device, published, families, "memory_mb")
    file_mb = _defaults(published, "memory_mb")
    ratio = 1.0 if ratio is None else ratio
    guessed = [model for model in published.answers.models if model not in known_mb]
    if guessed and device.line.limits.memory_mb is not None:
        names = ", ".join(guessed)
        notes.append(f"{published.entry.family}: the memory of {names} is estimated as {ratio:.2g} times the file size")
    return tuple(_rounded(known_mb.get(model, ratio * file_mb[model])) for model in published.answers.models)


def _estimates(
    device: Device, published: PublishedFamily, families: Mapping[str, PublishedFamily], quantity: Quantity
) -> tuple[float, ...] | None:
    """Return each model's time or energy as reported, else the calibrated one times the median ratio of reported ones.

    None if one is unknown.
    """
    own, ratio = _reports(device, published, families, quantity)
    values = {} if ratio is None else {model: ratio * value for model, value in _defaults(published, quantity).items()}
    values |= own
    models = published.answers.models
    return tuple(_rounded(values[model]) for model in models) if values.keys() >= {*models} else None


def _reports(
    device: Device, published: PublishedFamily, families: Mapping[str, PublishedFamily], quantity: Quantity
) -> tuple[dict[str, float], float | None]:
    """Return the values that a device reported for a family, by model, and their ratio to the published ones.

    The ratio is the median over all families; None if nothing was reported.
    """
    own = {
        name: {model: value for model, each in takes.items() if (value := getattr(each, quantity) or 0.0) >= LEAST}
        for name, takes in device.takes.items()
    }
    published_values = {name: _defaults(one, quantity) for name, one in families.items()}
    ratios = [
        value / published_values[name][model]
        for name in published_values.keys() & own.keys()
        for model, value in own[name].items()
        if model in published_values[name]
    ]
    return own.get(published.entry.family, {}), median(ratios) if ratios else None


def _defaults(published: PublishedFamily, quantity: Quantity) -> Mapping[str, float]:
    """Return each model's value for devices that report none: the calibration's, or for memory its file size in MB."""
    if quantity == "memory_mb":
        return {model: sum(files.values()) / 1e6 for model, files in published.files.items()}
    return published.answers.costs_ms if quantity == "cost_ms" else published.energies_mj


def _memory_limit_mb(device: Device, notes: list[str]) -> float | None:
    """Return the memory limit for models: the daemon's limit without its own memory; None without a limit."""
    daemon, limit_mb = device.line.daemon, device.line.limits.memory_mb
    if limit_mb is None:
        return None
    models_mb = [model.memory_mb for family in daemon.families for model in family.models]
    known_mb = [mb for mb in models_mb if mb is not None]
    if daemon.memory_mb is None or len(known_mb) < len(models_mb):
        notes.append("the daemon's own memory is not known: the memory limit is compared with the models only")
        return PLANNED * limit_mb
    return PLANNED * limit_mb - max(0.0, daemon.memory_mb - sum(known_mb))


def _power_limit_w(device: Device, demands: Sequence[Demand], notes: list[str]) -> float | None:
    """Return the budget above idle power; None if there is none, or power cannot be predicted."""
    budget_w = device.line.limits.budget_w
    if budget_w is None:
        return None
    unknown = [f"the energy of {one.family}" for one in demands if one.energies_mj is None]
    unknown += ["the idle power"] if device.idle_w is None else []
    if unknown or device.idle_w is None:
        notes.append(f"power cannot be predicted without {' and '.join(unknown)}")
        return None
    return _rounded(budget_w - device.idle_w)


def _class_shares(device: Device, published: PublishedFamily, notes: list[str]) -> tuple[tuple[int, float], ...] | None:
    """Return the share of answers by class, for classes of the recorded images; None if too few answers are known."""
    name = published.entry.family
    counted = device.classes.get(name)
    if not counted:
        return None
    counts = {published.classes[label]: count for label, count in counted.items() if label in published.classes}
    counts = {number: count for number, count in counts.items() if (published.answers.labels == number).any()}
    total = sum(counts.values())
    if total < FEWEST_ANSWERS:
        notes.append(
            f"{name}: its classes are not used: {total} answers have a known class, and {FEWEST_ANSWERS} is the minimum"
        )
        return None
    return tuple((number, _rounded(count / total)) for number, count in sorted(counts.items()))


def _rounded(value: float) -> float:
    """Round to two significant digits: reports are no more exact, and devices that differ by less are planned once."""
    return float(f"{value:.2g}")


def options_of(published: PublishedFamily, demand: Demand, deadline_ms: float | None) -> CascadeOptions:
    """Return the cascades that one device may use, without those that another one of the same models beats.

    Accuracy is effective: an answer counts if it is right and in time. That is MDInference's aggregate accuracy (Ogden
    and Guo 2020, section III), with answers past the SLA counted as wrong; here an answer is in time if the 95th
    percentiles of all its runs add up to at most the deadline. Images are weighed by the device's classes, as in MODI's
    usage statistics (section 3.2.1).
    """
    cascades = published.cascades(demand.costs_ms)
    reached, right = cascades.uniform_shares if demand.classes is None else cascades.shares(_weights(published, demand))
    used = cascades.rungs >= 0

    def totals(figures: tuple[float, ...]) -> NDArray[np.float64]:
        added: NDArray[np.float64] = np.cumsum(np.array(figures)[cascades.rungs] * used, axis=1)
        return added

    in_time = totals(demand.late_ms) <= (np.inf if deadline_ms is None else deadline_ms)
    accuracy, ms = (right * in_time).sum(axis=1), (reached * totals(demand.costs_ms)).sum(axis=1)
    mj = None if demand.energies_mj is None else (reached * totals(demand.energies_mj)).sum(axis=1)
    rows = _unbeaten(cascades.rows_by_models, np.stack([-accuracy, ms, ms if mj is None else mj], axis=1))
    models = [cascades.models[row] for row in rows]
    of_model = dict(zip(published.answers.models, demand.memory_mb, strict=True))
    return CascadeOptions(
        share=demand.share,
        rate_hz=demand.rate_hz,
        models=models,
        accuracy=accuracy[rows],
        ms=ms[rows],
        mj=None if mj is None else mj[rows],
        memory_mb=np.array([sum(of_model[name] for name in names) for names in models]),
        files=[{sha: size for name in names for sha, size in published.files[name].items()} for names in models],
        always=published.always,
    )


def _weights(published: PublishedFamily, demand: Demand) -> NDArray[np.float64]:
    """Return the weight of each recorded image, (n,), so that classes have the device's shares."""
    assert demand.classes is not None
    weights: NDArray[np.float64] = np.zeros(len(published.answers.labels))
    for number, share in demand.classes:
        same = published.answers.labels == number
        weights[same] = share / same.sum()
    weights /= weights.sum()
    return weights


def _unbeaten(groups: Sequence[NDArray[np.int64]], costs: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the rows that no other of their group beats in all costs; of equal rows, the first."""
    undominated = []
    for rows in groups:
        no_more = (costs[rows][None] <= costs[rows][:, None]).all(axis=2)  # [i, j]: j costs no more than i
        equal = no_more & no_more.T
        undominated.append(rows[~((no_more & ~equal) | np.tril(equal, -1)).any(axis=1)])
    return np.concatenate(undominated)
