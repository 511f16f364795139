"""The operating points of a family: which one a request gets, and that load never makes it dearer."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetsel.daemon.pace import allowed_ms
from jetsel.policies.cascade import Cascade, rungs_of
from jetsel.policies.front import ACCURACY, CAN_RUN, ENERGY, LATE, MEAN, Bound, Choice, Front, Point, front_of
from jetsel.policies.policy import Outlook
from jetsel.policies.single import Single

MODELS_MS = {"s": (2.0, 0.2), "m": (5.0, 0.5), "l": (20.0, 2.0)}
BEST = Point(Cascade("cascade", rungs_of(["s", "l"], [0.9])), 0.9, 12.4, {"s": 1.0, "l": 0.5}, 0.4, 60.0)
MIDDLE = Point(Cascade("cascade:2", rungs_of(["s", "m"], [0.8])), 0.8, 4.4, {"s": 1.0, "m": 0.4}, 0.4, 20.0)
LEAST = Point(Single("s"), 0.6, 2.0, {"s": 1.0}, 0.0, 9.0)
FRONT = Front((BEST, MIDDLE, LEAST), floor=1)


def outlook(
    models_ms: dict[str, tuple[float, float]] = MODELS_MS,
    budget_ms: float = math.inf,
    allowed_ms: float = math.inf,
    allowed_mj: float = math.inf,
) -> Outlook:
    return Outlook(budget_ms, models_ms, None, allowed_ms=allowed_ms, allowed_mj=allowed_mj)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, BEST),
        ({"allowed_ms": 12.4}, BEST),
        ({"allowed_ms": 12.3}, MIDDLE),
        ({"allowed_ms": -1.0}, MIDDLE),
        ({"allowed_mj": 59.9}, MIDDLE),
        ({"budget_ms": 24.5}, BEST),  # 0.4 ms for the choice, 22 for the models, 2.01 of deviation
        ({"budget_ms": 24.4}, MIDDLE),
        ({"budget_ms": 1.0}, LEAST),
    ],
    ids=["free", "just", "busy", "flooded", "power", "time", "little", "none"],
)
def test_the_most_accurate_point_that_the_request_may_take(change: dict[str, float], expected: Point) -> None:
    assert FRONT.select_now(outlook(**change)) is expected


def test_the_times_of_now_count_and_a_point_whose_model_is_away_does_not() -> None:
    slow = MODELS_MS | {"l": (40.0, 1.0)}
    assert FRONT.select_now(outlook(slow, allowed_ms=15.0)) is MIDDLE
    assert FRONT.select_now(outlook({"s": (2.0, 0.2)})) is LEAST
    assert FRONT.select_now(outlook({})) is BEST, "its error says why"


def test_the_first_preference_that_is_known_of_all_points_within_the_bounds_decides() -> None:
    now = outlook()
    assert FRONT.select(now, (CAN_RUN,)) == Choice(BEST)
    assert FRONT.select(now, (CAN_RUN,), (ENERGY, MEAN)) == Choice(LEAST, ENERGY)
    unknown = Front((BEST, replace(MIDDLE, energy_mj=None), LEAST))
    assert unknown.select(now, (Bound(ACCURACY, 0.7),), (ENERGY, MEAN)) == Choice(unknown.points[1], MEAN)
    assert unknown.select(now, (Bound(ENERGY, 60.0),), (ENERGY,), without=("single:s",)) == Choice(BEST, ENERGY)
    assert unknown.select(now, (CAN_RUN,), (ENERGY,)) == Choice(BEST), "the first if nothing is known of all"
    assert unknown.select(now, (Bound(LATE, 23.0), Bound(ACCURACY, 0.85))) is None
    assert unknown.select(now, (CAN_RUN,), (MEAN,), without=("s",)) is None, "all of them may run s"


@pytest.mark.parametrize(
    ("kept", "floor"),
    [((BEST, MIDDLE, LEAST), 1), ((BEST, LEAST), 0), ((MIDDLE, LEAST), 0), ((LEAST,), 0)],
    ids=["all", "without the floor", "without the best", "below the floor alone"],
)
def test_of_the_points_that_are_kept_the_floor_is_the_cheapest_that_was_not_below_it(
    kept: tuple[Point, ...], floor: int
) -> None:
    found = FRONT.only(lambda point: point.policy if point in kept else None)
    assert found == Front(kept, floor)
    assert FRONT.only(lambda _: None) is None


@given(
    target_ms=st.floats(1.0, 10_000.0),
    workers=st.integers(1, 8),
    around_ms=st.floats(0.0, 100.0),
    queue=st.integers(1, 500),
    more=st.integers(0, 500),
    models_ms=st.tuples(*[st.tuples(st.floats(0.1, 100.0), st.floats(0.0, 10.0))] * 3),
)
def test_with_more_load_the_chosen_cost_never_rises(
    target_ms: float,
    workers: int,
    around_ms: float,
    queue: int,
    more: int,
    models_ms: tuple[tuple[float, float], ...],
) -> None:
    known = dict(zip(MODELS_MS, models_ms, strict=True))
    front = front_of([MIDDLE, LEAST], BEST)
    assert front is not None
    chosen = [
        front.select_now(outlook(known, target_ms, allowed_ms(target_ms, waiting, workers, around_ms)))
        for waiting in (queue, queue + more)
    ]
    assert chosen[1].known_ms <= chosen[0].known_ms


def test_load_leads_to_where_most_are_right_for_the_cost_among_what_nothing_beats() -> None:
    dear = replace(BEST, policy=Single("l"), calibrated_ms=20.0, accuracy=0.95)
    beaten = replace(MIDDLE, policy=Single("m"), calibrated_ms=5.0, accuracy=0.7)
    found = front_of([MIDDLE, dear, LEAST, beaten], BEST)
    assert found is not None
    assert found.points == (BEST, MIDDLE, LEAST)
    assert found.floor == 2, "0.6 for 3.9 ms is more than 0.8 for 6.3 ms"
    assert found.cheapest == "single:s"
    assert found.models == ("s", "l", "m")
    costly = replace(LEAST, calibrated_ms=4.0)
    assert front_of([costly, MIDDLE], BEST).cheapest == "cascade:2"  # type: ignore[union-attr]
    assert front_of([LEAST, MIDDLE]).points == (MIDDLE, LEAST)  # type: ignore[union-attr]
    assert front_of([]) is None


def test_a_chain_takes_at_most_the_time_of_its_slowest_path() -> None:
    chain = replace(BEST, paths=(("s",), ("s", "m")), chooser_ms=1.0)
    assert LATE.value_of(chain, outlook()) == pytest.approx(1.0 + 2.0 + 5.0 + math.hypot(0.2, 0.5))
