"""The policy of requirements: which path it takes for what is asked, and what it says where there is none."""

import math
from dataclasses import replace
from typing import Any

import pytest

from jetsel.base.errors import ModelUnavailableError, RequirementsError
from jetsel.policies.cascade import Cascade, rungs_of
from jetsel.policies.front import Front, Point
from jetsel.policies.policy import Evidence, Outlook
from jetsel.policies.requirements import Requirements
from jetsel.policies.single import Single
from jetsel.policies.with_edge import edge_point
from tests.unit.policies.stepping import ended, said

HERE = {"s": (5.0, 0.5), "m": (20.0, 2.0)}
THERE = {"edge:l": (10.0, 3.0), "edge:xl": (60.0, 3.0)}
HERE_ARE = Front(
    (
        Point(Single("s"), 0.4, 5.0, {}, 0.0, 30.0),
        Point(Single("m"), 0.6, 20.0, {}, 0.0, 20.0),
        Point(Cascade("cascade", rungs_of(["s", "m"], [0.8])), 0.62, 15.0, {}, 0.0, 35.0),
    )
)
AWAY = tuple(edge_point(name, right, mj_per_kb=0.5) for name, right in (("edge:l", 0.75), ("edge:xl", 0.9)))
POLICY = Requirements(HERE_ARE, Front(AWAY), "time", None, None, None)


def photo(budget_ms: float = math.inf, unavailable: dict[str, str] | None = None, **change: Any) -> Evidence:
    gone = unavailable or {}
    times = {name: ms for name, ms in {**HERE, **THERE}.items() if name not in gone}
    network_ms = None if gone.keys() & THERE.keys() else (30.0, 4.0)
    fields: dict[str, Any] = {"traffic_kb": {"edge:l": 50.0, "edge:xl": 100.0}} | change
    return Evidence(None, None, Outlook(budget_ms, times, network_ms, gone, **fields))


def taken(policy: Requirements, evidence: Evidence) -> str:
    """The models that run where none is sure."""
    steps, ran = policy(evidence), []
    try:
        asked = next(steps)
        while True:
            ran += asked.models
            asked = steps.send((said(asked.models[0], 0.5),))
    except StopIteration:
        return " ".join(ran)


@pytest.mark.parametrize(
    ("asks", "budget_ms", "models"),
    [
        ({"least_accuracy": 0.3}, math.inf, "s"),
        ({"least_accuracy": 0.5}, math.inf, "s m"),  # the cascade takes 15 ms in the mean, m takes 20
        ({"least_accuracy": 0.5}, 25.0, "m"),  # all rungs would take 25 + hypot(0.5, 2.0) ms
        ({"most_energy_mj": 25.0}, math.inf, "m"),
        ({"least_accuracy": 0.5, "most_energy_mj": 40.0, "saves": "energy"}, math.inf, "m"),
        ({"least_accuracy": 0.7}, math.inf, "edge:l"),  # 10 + 30 + hypot(3, 4) = 45 ms are less than 95
        ({"least_accuracy": 0.8, "most_energy_mj": 50.0}, 95.0, "edge:xl"),  # 100 kB of 0.5 mJ; 60 + 30 + 5 ms
        ({"least_accuracy": 0.7, "most_energy_mj": 25.0}, math.inf, "edge:l"),
    ],
)
def test_the_cheapest_that_has_all_of_it_answers_here_and_else_at_the_edge(
    asks: dict[str, Any], budget_ms: float, models: str
) -> None:
    assert taken(replace(POLICY, **asks), photo(budget_ms)) == models


def refusal(policy: Requirements, evidence: Evidence) -> str:
    with pytest.raises(RequirementsError) as raised:
        next(policy(evidence))
    return str(raised.value)


def test_who_is_refused_is_told_for_each_requirement_which_path_came_nearest() -> None:
    asks = replace(POLICY, least_accuracy=0.95, most_energy_mj=10.0)
    told = refusal(asks, photo(3.0))
    assert "0.95: edge:xl comes nearest with 0.9;" in told
    assert "10 mJ: single:m comes nearest with 20 mJ" in told
    assert "3 ms: single:s comes nearest with 5.5 ms" in told
    away = dict.fromkeys(THERE, "it is away")
    told = refusal(asks, photo(unavailable=away))
    assert "cascade comes nearest with 0.62;" in told
    assert "edge:l and edge:xl cannot be used: it is away" in told
    assert "none is configured" in refusal(replace(asks, edge=Front(), no_edge="none is configured"), photo())


def test_what_is_not_known_meets_no_requirement() -> None:
    unknown = Front((Point(Single("s"), None, None, {}, 0.0, None),))
    nothing = replace(POLICY, front=unknown, edge=Front((replace(AWAY[1], energy_mj=None),)), no_energy="no meter")
    assert "(no meter)" in refusal(replace(nothing, most_energy_mj=1e6), photo())
    assert "unknown for every path" in refusal(replace(nothing, edge=Front(), least_accuracy=0.0), photo())
    away = replace(POLICY, front=Front(), most_energy_mj=1e6)
    unpriced = replace(away, edge=Front(tuple(replace(point, mj_per_kb=None) for point in AWAY)))
    for asks, sent in ((unpriced, {"edge:l": 1.0}), (away, {})):
        assert "unknown for every path" in refusal(asks, photo(traffic_kb=sent)), "what sending takes is not known"


def test_a_path_that_lacks_a_model_or_fails_leaves_it_to_another() -> None:
    asks = replace(POLICY, least_accuracy=0.5)
    assert taken(asks, photo(unavailable={"s": "its file is damaged"})) == "m"
    assert taken(asks, photo(unavailable={"m": "its file is damaged"})) == "edge:l"
    steps = replace(asks, front=Front(HERE_ARE.points[:2]), edge=Front(AWAY[:1]))(photo())
    assert next(steps).models == ("m",)
    assert steps.throw(ModelUnavailableError("m failed")).models == ("edge:l",)
    with pytest.raises(ModelUnavailableError, match="no link"):
        steps.throw(ModelUnavailableError("no link"))


@pytest.mark.parametrize(("confidence", "model"), [(0.76, "s"), (0.74, "edge:l")])
def test_a_model_here_is_asked_first_where_nothing_may_leave_before(confidence: float, model: str) -> None:
    path = edge_point("edge:l", 0.75, "s", 30.0, 0.5)
    asks = replace(POLICY, front=Front(), edge=Front((path,)), least_accuracy=0.7, most_energy_mj=55.0)
    steps = asks(photo(50.6))  # 5 + 10 + 30 + sqrt(0.25 + 9 + 16) ms; 30 + 50 * 0.5 mJ
    assert next(steps).models == ("s",)
    if model == "s":
        assert ended(steps, said("s", confidence)).prediction.model == "s"
    else:
        assert steps.send((said("s", confidence),)).models == ("edge:l",)
    assert "50.02 ms" in refusal(asks, photo(50.0))
