"""What a plan gains (MODI, section 3.2.2): `python -m calibration.papers.modi.gains --starter FIT TEST --imagenet ...`.

200 devices are drawn by a seed: storage, deadline, speed, and how the requests divide between two families. The
manager's program plans each on FIT, and TEST judges, beside the best model that fits each device and one model for all.
FIT and TEST are recordings, by `jetsel calibrate` and `jetsel evaluate`; --models: the folder of `imagenet`. Writes
results/modi-gains.md.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibration.measures import mean_interval
from calibration.papers.tables import table, written
from jetsel.addons.fleet.documents import Entry
from jetsel.addons.fleet.manager.demands import Demand, options_of
from jetsel.addons.fleet.manager.published import PublishedFamily
from jetsel.addons.fleet.manager.solving import Capacity, CascadeOptions, solve
from jetsel.artefact.condensed import RecordedAnswers
from jetsel.calibrate.fit.temperature import fit_temperatures
from jetsel.calibrate.record.load import load
from jetsel.calibrate.record.recording import Recording
from jetsel.premodel.cascades import FittedCascade, Outputs, log_softmax, replay_cascade, tried_cascades
from jetsel.zoo import STARTER, Family, scan

DEVICES, SEED = 200, 2018
SPEEDS = (1.0, 12.0)  # times of the processor that recorded: drawn evenly by their logarithm, as all limits are
DEADLINES_MS = (10.0, 200.0)
SHARES = (0.1, 0.9)  # of the requests for the first of two families
LATE = 1.2  # the 95th percentile of a run beside its mean
SIGMA = math.log(LATE) / 1.645  # of runs that are lognormal
WAYS = ("the plan", "the best model that fits each device", "one model for all devices")
Models = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Planned:
    """One family: as it is published with what it answered on FIT, and the same models on TEST."""

    published: PublishedFamily
    cascades: Sequence[FittedCascade]  # in the order of published.cascades
    test: Outputs


@dataclass(frozen=True)
class Device:
    """What was drawn: bytes, ms, the factor of all times, and the share of its requests by family."""

    storage_bytes: float
    deadline_ms: float
    speed: float
    shares: tuple[float, ...]


@dataclass(frozen=True)
class Given:
    """What a choice of models gives one device: shares of its requests; nothing is held where nothing fits."""

    storage_mb: float = 0.0
    expected: float = 0.0
    right: float = 0.0
    in_time: float = 0.0
    both: float = 0.0


def main() -> None:
    """Plan and judge each family alone and both together."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    parser = argparse.ArgumentParser(
        prog="python -m calibration.papers.modi.gains", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--starter", type=Path, nargs=2, required=True, metavar=("FIT", "TEST"))
    parser.add_argument("--imagenet", type=Path, nargs=2, required=True, metavar=("FIT", "TEST"))
    parser.add_argument("--models", type=Path, required=True, help="folder of the family imagenet")
    options = parser.parse_args()
    starter = planned(scan([STARTER]).families["starter"], *options.starter)
    imagenet = planned(scan([options.models]).families["imagenet"], *options.imagenet)
    found = []
    for families in ([starter], [imagenet], [starter, imagenet]):
        names = ", ".join(one.published.entry.family for one in families)
        found += [f"{names} | {row}" for row in rows(families, drawn(families))]
    columns = (
        "families | what each device holds | MB | right and in time, % | beside the plan, points "
        "| as expected on FIT, % | right, % | in time, % | hold nothing"
    )
    under = (
        f"Seed {SEED}. Speed {SPEEDS[0]:g} to {SPEEDS[1]:g} times the recorded times, deadline {DEADLINES_MS[0]:g} to "
        f"{DEADLINES_MS[1]:g} ms, storage from the smallest choice to all files, each even by its logarithm. A run's "
        f"95th percentile is {LATE:g} times its mean. Intervals are over the drawn devices.\n"
    )
    written("modi-gains", "\n".join([table(f"{DEVICES} drawn devices", columns, found), under]))


def planned(family: Family, fit: Path, test: Path) -> Planned:
    """Read a family's recordings."""
    known = load(fit, family).recording
    files = {one.manifest.name: {one.path.name: one.path.stat().st_size} for one in family.models}
    return prepared(family.name, known, load(test, family, known.models).recording, files)


def prepared(name: str, known: Recording, others: Recording, files: Mapping[str, Mapping[str, int]]) -> Planned:
    """Return a family of a recording to plan on and one to judge on; files: bytes by name, of each model."""
    temperatures = fit_temperatures(known)
    scaled = [
        log_softmax(logits, temperatures[model]) for model, logits in zip(known.models, known.logits, strict=True)
    ]
    answers = RecordedAnswers(
        models=known.models,
        logits=np.stack(scaled),
        classes=known.classes,
        features=known.features,
        groups=np.arange(len(known.classes)),
        costs_ms=known.costs_ms,
        labels=known.classes,
    )
    entry = Entry(family=name, version=1, sha256="0" * 64)
    published = PublishedFamily(entry, answers, {}, {}, {model: files[model] for model in known.models}, {})
    costs = np.array([known.costs_ms[model] for model in known.models])
    said = [log_softmax(others.logits[others.models.index(model)], temperatures[model]) for model in known.models]
    return Planned(
        published, tried_cascades(Outputs(scaled, known.classes, costs)).cascades, Outputs(said, others.classes, costs)
    )


def drawn(families: Sequence[Planned]) -> list[Device]:
    """Return the devices."""
    draw = np.random.default_rng(SEED)
    sizes = [[sum(files.values()) for files in one.published.files.values()] for one in families]
    everything = {
        sha: size for one in families for files in one.published.files.values() for sha, size in files.items()
    }
    storage = (sum(map(min, sizes)), sum(everything.values()))

    def even(ends: tuple[float, float]) -> float:
        return float(math.exp(draw.uniform(*map(math.log, ends))))

    devices = []
    for _ in range(DEVICES):
        share = float(draw.uniform(*SHARES))
        shares = (share, 1 - share) if len(families) > 1 else (1.0,)
        devices.append(Device(even(storage), even(DEADLINES_MS), even(SPEEDS), shares))
    return devices


def rows(families: Sequence[Planned], devices: Sequence[Device]) -> list[str]:
    """Return a row for each way."""
    options = [[offered(one, device, place) for place, one in enumerate(families)] for device in devices]
    single = [[alone(each) for each in some] for some in options]
    for_all = same_for_all(single, devices)
    by_way: dict[str, list[Given]] = {way: [] for way in WAYS}
    for number, device in enumerate(devices):
        every = (
            options[number],
            single[number],
            [only(each, names) for each, names in zip(single[number], for_all, strict=True)],
        )
        for way, some in zip(WAYS, every, strict=True):
            by_way[way].append(given(families, some, device, np.random.default_rng([SEED, number])))
    plan = np.array([one.both for one in by_way[WAYS[0]]])
    return [
        _row(way if way != WAYS[2] else f"{way}: {', '.join(' '.join(names) for names in for_all)}", found, plan)
        for way, found in by_way.items()
    ]


def same_for_all(single: Sequence[Sequence[CascadeOptions]], devices: Sequence[Device]) -> list[Models]:
    """Return the model of each family that gives most over all devices if each of them that has the room holds it."""
    names = [sorted({models for some in single for models in some[place].models}) for place in range(len(single[0]))]

    def worth(chosen: Sequence[Models]) -> float:
        each = ([only(one, names) for one, names in zip(some, chosen, strict=True)] for some in single)
        found = (solve(some, Capacity(device.storage_bytes)) for some, device in zip(each, devices, strict=True))
        return sum(0.0 if one is None else one.accuracy for one in found)

    return list(max(itertools.product(*names), key=worth))


def alone(options: CascadeOptions) -> CascadeOptions:
    """Return the single models among a family's cascades."""
    return options.with_rows(np.array([row for row, models in enumerate(options.models) if len(models) == 1], int))


def only(options: CascadeOptions, models: Models) -> CascadeOptions:
    """Return what is of these models among a family's cascades."""
    return options.with_rows(np.array([row for row, names in enumerate(options.models) if names == models], int))


def given(
    families: Sequence[Planned], options: Sequence[CascadeOptions], device: Device, draw: np.random.Generator
) -> Given:
    """Return what the program's choice among these options gives one device on TEST."""
    chosen = solve(options, Capacity(device.storage_bytes))
    if chosen is None:
        return Given()
    files: Mapping[str, int] = {}
    shares = np.zeros(3)
    for family, one, row, share in zip(families, options, chosen.rows, device.shares, strict=True):
        files = {**files, **one.files[row]}
        fitted = family.cascades[_place(family, device, one, row)]
        right, ran = replay_cascade(fitted, family.test)
        took = draw.lognormal(-(SIGMA**2) / 2, SIGMA, ran.shape)
        in_time = (ran * took) @ family.test.costs * device.speed <= device.deadline_ms
        shares += share * np.array([right.mean(), in_time.mean(), (right & in_time).mean()])
    return Given(sum(files.values()) / 1e6, chosen.accuracy, *shares.tolist())


def offered(family: Planned, device: Device, place: int) -> CascadeOptions:
    """Return the cascades of a device's family, one of several, that the manager's program chooses from."""
    return options_of(family.published, _demand(family, device, place), device.deadline_ms)


def _demand(family: Planned, device: Device, place: int) -> Demand:
    costs_ms = tuple(device.speed * cost for cost in family.published.answers.costs_ms.values())
    return Demand(
        family=family.published.entry.family,
        share=device.shares[place],
        rate_hz=None,
        costs_ms=costs_ms,
        late_ms=tuple(LATE * cost for cost in costs_ms),
        energies_mj=None,
        memory_mb=(0.0,) * len(costs_ms),
        classes=None,
    )


def _place(family: Planned, device: Device, options: CascadeOptions, row: int) -> int:
    """Return the place among a family's cascades of one that `options_of` offers: it tells models and figures alone."""
    demand = _demand(family, device, 0)
    cascades = family.published.cascades(demand.costs_ms)
    ms = np.cumsum(np.array(demand.costs_ms)[cascades.rungs] * (cascades.rungs >= 0), axis=1)
    reached, right = cascades.uniform_shares
    figures = np.stack([(right * (LATE * ms <= device.deadline_ms)).sum(axis=1), (reached * ms).sum(axis=1)], axis=1)
    same = np.isclose(figures, [options.accuracy[row], options.ms[row]]).all(axis=1)
    return next(place for place in np.flatnonzero(same).tolist() if cascades.models[place] == options.models[row])


def _row(text: str, found: Sequence[Given], plan: NDArray[np.float64]) -> str:
    both = np.array([one.both for one in found])
    mean = {
        name: 100 * float(np.mean([getattr(one, name) for one in found])) for name in ("expected", "right", "in_time")
    }
    beside = "" if (both == plan).all() else _interval(100 * (both - plan), "+.1f")
    nothing = sum(not one.storage_mb for one in found)
    cells = [text, f"{np.mean([one.storage_mb for one in found]):.1f}", _interval(100 * both, ".1f"), beside]
    return " | ".join([*cells, *(f"{value:.1f}" for value in mean.values()), str(nothing)])


def _interval(values: NDArray[np.float64], digits: str) -> str:
    ends = mean_interval(values)
    return f"{values.mean():{digits}} ({ends.low:{digits}} to {ends.high:{digits}})"


if __name__ == "__main__":
    main()
