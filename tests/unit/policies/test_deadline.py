"""The policy of deadlines: what it asks for in which time, and what it answers with what came."""

from dataclasses import replace
from typing import Any

import pytest

from jetsel.base.errors import EngineDiedError
from jetsel.policies.cascade import Cascade, rungs_of
from jetsel.policies.deadline import Deadline
from jetsel.policies.front import Front, Point
from jetsel.policies.policy import Evidence, Outlook, OutOfTime, Run
from jetsel.policies.single import Single
from jetsel.policies.with_edge import edge_point
from tests.unit.policies.stepping import ended, said

HERE = {"s": (5.0, 0.5), "m": (20.0, 2.0)}
THERE = {"edge:l": (10.0, 1.0), "edge:xl": (60.0, 3.0)}
SINGLES = (
    Point(Single("m"), 0.6, 20.0, {"m": 1.0}, 0.0, None),
    Point(Single("s"), 0.4, 5.0, {"s": 1.0}, 0.0, None),
)
PATHS = (
    Point(Cascade("cascade", rungs_of(["s", "m"], [0.8])), 0.62, 15.0, {"s": 1.0, "m": 0.5}, 0.0, None),
    *SINGLES,
)
ACCURACY = {"edge:l": 0.75, "edge:xl": 0.9}


def policy(accuracy: dict[str, float] = ACCURACY, **change: Any) -> Deadline:
    settings: dict[str, Any] = {"allow": "always", "duplicate": "when-needed"} | change
    edge = Front(tuple(edge_point(name, known) for name, known in accuracy.items()))
    return Deadline(Front(PATHS), Single("m"), Front(SINGLES), edge, **settings)


def outlook(budget_ms: float, network_ms: tuple[float, float] | None = (30.0, 2.0), **change: Any) -> Evidence:
    return Evidence(None, None, Outlook(budget_ms, {**HERE, **THERE, **change}, network_ms))


def asked(evidence: Evidence, **change: Any) -> tuple[Any, Run]:
    steps = policy(**change)(evidence)
    return steps, next(steps)


@pytest.mark.parametrize(
    ("budget_ms", "expected"), [(100.0, "cascade"), (26.0, "m"), (15.0, "s"), (1.0, "s")], ids=["all", "m", "s", "none"]
)
def test_without_an_edge_the_path_is_selected_that_the_time_allows(budget_ms: float, expected: str) -> None:
    for evidence, change in ((outlook(budget_ms, None), {}), (outlook(budget_ms), {"allow": "never"})):
        steps, first = asked(evidence, **change)
        assert first.models == (("s",) if expected == "cascade" else (expected,))
        if expected == "cascade":
            assert steps.send((said("s", 0.5),)).models == ("m",)


def test_a_path_whose_model_is_away_is_not_chosen() -> None:
    steps, first = asked(Evidence(None, None, Outlook(1000.0, {"s": HERE["s"]}, None)))
    assert first.models == ("s",)
    assert "single:s is expected within 1000 ms" in ended(steps, said("s", 0.5)).because


def test_a_photograph_is_reduced_where_the_whole_would_come_too_late() -> None:
    timed = policy(ACCURACY | {"edge:xl@224": 0.85}, duplicate="always")
    smaller = {"edge:xl@224": (20.0, 1.0)}  # less what a smaller file saves on its way
    for budget_ms, expected in ((150.0, "edge:xl"), (70.0, "edge:xl@224")):
        steps = timed(outlook(budget_ms, **smaller))
        assert next(steps).models == ("m", expected)


def test_a_path_here_that_is_as_accurate_is_taken_before_the_edge() -> None:
    timed = replace(policy(), front=Front((replace(PATHS[0], accuracy=0.95), *PATHS[1:])))
    assert next(timed(outlook(300.0))).models == ("s",)


def test_without_a_deadline_the_other_policy_answers() -> None:
    _, first = asked(Evidence(None, None))
    assert first.models == ("m",)


def test_what_is_here_is_sure_spares_the_edge_where_there_is_time_for_both() -> None:
    steps, first = asked(outlook(300.0))
    assert (first.models, first.until) == (("m",), "all")
    assert ended(steps, said("m", 0.95)).prediction.model == "m"
    steps, _ = asked(outlook(300.0))
    second = steps.send((said("m", 0.6),))
    assert (second.models, second.until) == (("edge:xl",), "deadline")
    assert ended(steps, said("edge:xl", 0.5)).prediction.model == "edge:xl"


@pytest.mark.parametrize("failure", [OutOfTime(), EngineDiedError("no link")], ids=["late", "failed"])
def test_an_edge_that_does_not_answer_leaves_what_is_here(failure: Exception) -> None:
    steps, _ = asked(outlook(300.0))
    steps.send((said("m", 0.6),))
    with pytest.raises(StopIteration) as stop:
        steps.throw(failure)
    assert stop.value.value.prediction.model == "m"


def test_both_run_together_where_the_edge_may_come_late_and_one_is_held_back_where_it_hardly_can() -> None:
    wide = {"edge:xl": (60.0, 1.0), "edge:l": (10.0, 40.0)}
    steps, first = asked(outlook(95.0, (30.0, 20.0), **wide))
    assert (first.models, first.until, first.held_ms) == (("m", "edge:xl"), "deadline", None)
    assert ended(steps, said("m", 0.5), said("edge:xl", 0.5)).prediction.model == "edge:xl"
    _, first = asked(outlook(99.0, (30.0, 1.0)))
    assert first.models == ("m", "edge:xl")
    assert first.held_ms == pytest.approx(20.0 + 2.33 * 2.0 + 1.0)
    _, first = asked(outlook(99.0, (30.0, 1.0)), duplicate="always")
    assert first.held_ms is None


def test_never_both_takes_the_edge_where_it_is_certain_and_a_path_here_elsewhere() -> None:
    _, first = asked(outlook(99.0, (30.0, 1.0)), duplicate="never")
    assert first.models == ("m", "edge:xl")
    assert first.held_ms is not None, "what is here begins where nothing has come by the last moment"
    _, first = asked(outlook(75.0, (30.0, 20.0)), duplicate="never")
    assert first.models == ("s",), "the cascade begins"


def test_where_nothing_here_can_run_the_edge_is_asked_alone() -> None:
    steps = policy()(Evidence(None, None, Outlook(300.0, THERE, (30.0, 2.0))))
    assert next(steps).models == ("edge:xl",)
    assert ended(steps, said("edge:xl", 0.5)).prediction.model == "edge:xl"


def test_with_low_confidence_alone_nothing_leaves_before_a_model_here_was_not_sure() -> None:
    _, first = asked(outlook(95.0, (30.0, 20.0)), allow="low-confidence", duplicate="always")
    assert (first.models, first.until) == (("m",), "all")


def test_nothing_is_sent_where_the_edge_is_hardly_more_accurate_than_a_path_here() -> None:
    for accuracy, expected in ((0.89, ("s",)), (0.87, ("m", "edge:xl"))):  # the edge's is 0.9, and all but certain
        front = Front((replace(PATHS[0], accuracy=accuracy), *PATHS[1:]))
        timed = replace(policy(duplicate="always"), front=front)
        assert next(timed(outlook(300.0))).models == expected
