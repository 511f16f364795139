"""What is planned for one device, worked out by hand, and the solver against trying everything."""

from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from calibration.papers.modi_plan import drawn, tried, worth
from jetsel.addons.fleet import publishing
from jetsel.addons.fleet.documents import Plan
from jetsel.addons.fleet.manager.devices import read_devices
from jetsel.addons.fleet.manager.metadata import Metadata
from jetsel.addons.fleet.manager.planning import Planner, Proposal
from jetsel.addons.fleet.manager.solving import TIE, Capacity, CascadeOptions, solve
from jetsel.addons.fleet.publishing import write_plan
from jetsel.addons.fleet.storage import Storage
from jetsel.addons.fleet.usage import DeviceLimits, FamilyUsage, Usage
from jetsel.base.errors import RepositoryError
from tests.unit.addons.fleet.published import Pair, family_folder, publish, repository, told, upload


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory, key: Pair) -> Storage:
    folder = tmp_path_factory.mktemp("fleet")
    return repository(str(folder / "repository"), folder, key)


def proposed(storage: Storage, key: Pair, *lines: Usage, deadline_ms: float | None = None) -> Proposal:
    """What is proposed for a device that told these lines."""
    name = f"device-{len(storage.names('usage'))}"
    upload(storage, *(structs.replace(line, device=name) for line in lines))
    table = Metadata(storage)
    assert table.gather() == {}
    planner = Planner(storage, [key.public], deadline_ms=deadline_ms)
    return planner.propose(name, read_devices(table)[name])


def lines(a_second: float, **changes: object) -> list[Usage]:
    """Two minutes of so many requests in a second."""
    return [told("any", sequence, int(60 * a_second), **changes) for sequence in (1, 2)]


def test_without_a_limit_the_cascade_is_chosen(published: Storage, key: Pair) -> None:
    found = proposed(published, key, *lines(1))
    (pets,) = found.families
    assert (pets.cascade, pets.accuracy, pets.mean_ms) == (("small", "large"), 0.8, 5.0)
    assert found.after.energy_mj == 10.0
    assert (found.binds, found.dropped, found.changes) == ({}, {}, True)
    assert found.before == found.after, "both models are there already"


def with_figures(small: dict[str, float], large: dict[str, float]) -> tuple[FamilyUsage, ...]:
    """The family as the device tells it, with other figures of its two models."""
    (family,) = told("any", 1, 60).daemon.families
    models = (structs.replace(one, **new) for one, new in zip(family.models, (small, large), strict=True))
    return (structs.replace(family, models=tuple(models)),)


WEIGHED = with_figures({"memory_mb": 30.0}, {"memory_mb": 40.0})  # so that the daemon alone has 30 MB of its 100
POWER = {"watts": 3.0, "energy_j": 60.0}  # in a minute: 2 W when idle


@pytest.mark.parametrize(
    ("a_second", "limits", "changes", "expected", "binds"),
    [
        (1, DeviceLimits(storage_mb=0.007), {}, ("small", 0.6), {"storage": 0.8}),
        (1, DeviceLimits(storage_mb=100, memory_mb=0.003), {}, ("small", 0.6), {"memory": 0.8}),
        (
            1,
            DeviceLimits(storage_mb=100, memory_mb=90),
            {"memory_mb": 100.0, "families": WEIGHED},
            ("small", 0.6),
            {"memory": 0.8},
        ),
        (1, DeviceLimits(storage_mb=100, deadline_ms=10.5), {}, ("small", 0.6), {"deadline": 0.8}),
        (100, DeviceLimits(storage_mb=100, budget_w=2.5), POWER, ("small", 0.6), {"power": 0.8}),
        (100, DeviceLimits(storage_mb=100, budget_w=3.0), POWER, ("small large", 0.8), {}),
        (250, DeviceLimits(storage_mb=100), {}, ("small large", 0.64), {"time": 0.8}),  # 1.25 s of work in a second
        (400, DeviceLimits(storage_mb=100), {}, ("small", 0.6), {"time": 0.8}),
    ],
)
def test_a_limit_that_binds_is_kept_and_named(
    published: Storage,
    key: Pair,
    a_second: float,
    limits: DeviceLimits,
    changes: dict[str, object],
    expected: tuple[str, float],
    binds: dict[str, float],
) -> None:
    found = proposed(published, key, *lines(a_second, limits=limits, **changes))
    (pets,) = found.families
    assert (" ".join(pets.cascade), pets.accuracy) == expected
    assert found.binds == binds
    assert found.dropped.keys() == ({"pets/large"} if expected[0] == "small" else set())


def test_where_nothing_fits_nothing_is_planned_and_the_limit_is_named(published: Storage, key: Pair) -> None:
    found = proposed(published, key, *lines(1, limits=DeviceLimits(storage_mb=0.001)))
    assert (found.families, found.after, found.changes) == ((), None, False)
    assert "storage is too small" in found.notes[-1]


TINY, HUGE = 5e-324, 1e12
ABSURD = {
    "times": [{"cost_ms": TINY, "p95_ms": HUGE}, {"cost_ms": HUGE, "p95_ms": TINY}],
    "energies": [{"energy_mj": TINY}, {"energy_mj": HUGE}],
    "small figures": [dict.fromkeys(("cost_ms", "energy_mj", "memory_mb"), TINY)] * 2,
    "large figures": [dict.fromkeys(("cost_ms", "energy_mj", "memory_mb"), HUGE)] * 2,
    "negative figures": [dict.fromkeys(("cost_ms", "p95_ms", "energy_mj", "memory_mb"), -HUGE)] * 2,
}


@pytest.mark.parametrize("kind", list(ABSURD))
def test_absurd_figures_of_a_device_raise_nothing(published: Storage, key: Pair, kind: str) -> None:
    limits = DeviceLimits(storage_mb=100, memory_mb=50, budget_w=3, deadline_ms=20)
    families = with_figures(*ABSURD[kind])
    first, second = lines(1, limits=limits, families=families, watts=HUGE, energy_j=-HUGE, memory_mb=1.0)
    for next_s in (TINY, 60.0):
        proposed(published, key, structs.replace(first, at_s=0.0), structs.replace(second, at_s=next_s))


def test_classes_that_a_device_sees_weigh_its_photographs(published: Storage, key: Pair) -> None:
    def seeing(**classes: int) -> Usage:
        (family,) = told("any", 1, 200).daemon.families
        numbers = {f"n{int(name[1:]):08d}": count for name, count in classes.items()}
        return told("any", 1, 200, families=(structs.replace(family, classes=numbers),))

    large = proposed(published, key, seeing(c0=100, c2=100, c5=50))  # of class 5 there is no photograph
    assert large.after.accuracy == 1.0
    small = proposed(published, key, seeing(c4=150, c3=50))
    assert (small.families[0].cascade, small.families[0].accuracy) == (("small",), 0.75)
    few = proposed(published, key, seeing(c4=50))
    assert few.after.accuracy == 0.8
    assert "50 answers" in few.notes[-1]


def test_a_plan_stays_unless_another_is_clearly_better_or_it_does_not_fit(published: Storage, key: Pair) -> None:
    proposal = proposed(published, key, *lines(1))
    (pets,) = proposal.families
    both, wide, tight = ("small", "large"), DeviceLimits(storage_mb=100), DeviceLimits(storage_mb=0.007)
    cases = ((both, wide, False, 0.8), (("small",), wide, True, 0.6), (both, tight, True, 0.8))
    for number, (models, limits, changes, before) in enumerate(cases):
        name = f"planned-{number}"
        upload(published, told(name, 1, 60, limits=limits), told(name, 2, 60, limits=limits))
        planned = structs.replace(pets, models=models, cascade=models)
        write_plan(published, Plan(device=name, serial=4, families=(planned,)), [key.private])
        table = Metadata(published)
        table.gather()
        found = Planner(published, [key.public]).propose(name, read_devices(table)[name])
        assert (found.serial, found.changes) == (4, changes)
        assert found.before.accuracy == before


def test_a_family_without_answers_is_refused_by_name(tmp_path: Path, key: Pair) -> None:
    storage = Storage(str(tmp_path / "repository"))
    publishing.init(storage, [key.private])
    publish(storage, family_folder(tmp_path / "models", "small"), key)
    with pytest.raises(RepositoryError, match=r"family pets cannot be planned.*publish it again"):
        proposed(storage, key, *lines(1))


@pytest.mark.parametrize("counts", [[3], [5], [2, 2], [3, 2]])
def test_nothing_is_worth_more_than_what_is_chosen(counts: list[int]) -> None:
    outcomes = set()
    for seed in range(30):
        families, room = drawn(counts, seed)
        chosen, best = solve(families, room), tried(families, room)
        outcomes.add(best is None)
        if chosen is None or best is None:
            assert chosen is best
        else:
            assert chosen.accuracy == pytest.approx(worth(families, room, chosen.rows), abs=1e-9)
            assert chosen.accuracy == pytest.approx(best, abs=3 * TIE)
    assert outcomes == {True, False}


def test_of_equal_choices_the_smaller_and_faster_is_taken() -> None:
    options = CascadeOptions(
        share=1.0,
        rate_hz=None,
        models=[("large",), ("small",)],
        accuracy=np.array([0.5, 0.5]),
        ms=np.array([2.0, 1.0]),
        mj=None,
        memory_mb=np.array([1.0, 1.0]),
        files=[{"a": 200}, {"b": 100}],
        always={},
    )
    for room in (Capacity(), Capacity(storage_bytes=150.0)):
        chosen = solve([options], room)
        assert chosen.rows == (1,)
