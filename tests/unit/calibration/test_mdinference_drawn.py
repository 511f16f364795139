"""MDInference's selection as published: what the deadline policy draws, here and at the edge."""

from __future__ import annotations

import numpy as np

from calibration.papers.mdinference.drawn import NAME, drawn
from jetsel.policies.deadline import Deadline
from jetsel.policies.front import Front, Point
from jetsel.policies.policy import Evidence, Outlook
from jetsel.policies.single import Single
from jetsel.policies.with_edge import edge_point

HERE = {"s": (5.0, 0.5), "m": (5.0, 0.5)}
POINTS = tuple(Point(Single(name), right, 5.0, {name: 1.0}, 0.0, None) for name, right in (("s", 0.4), ("m", 0.6)))


def first_models(there: dict[str, tuple[float, float]], network_ms: tuple[float, float] | None) -> set[tuple[str, ...]]:
    """Return what 60 requests with 100 ms run at first."""
    edge = Front(tuple(edge_point(name, 0.8 + place / 10) for place, name in enumerate(there)))
    timed = Deadline(Front(POINTS[1:]), Single("m"), Front(POINTS[1:]), edge, "always", "always")
    policy = drawn(timed, POINTS, np.random.default_rng(2020))
    assert policy.name == NAME
    ahead = Outlook(100.0, HERE | there, network_ms)
    return {next(policy(Evidence(None, None, ahead))).models for _ in range(60)}


def test_models_of_about_the_same_time_share_the_requests() -> None:
    assert first_models({}, None) == {("s",), ("m",)}
    twins = {"edge:l": (60.0, 3.0), "edge:xl": (60.0, 3.0)}
    assert first_models(twins, (30.0, 1.0)) == {("m", "edge:l"), ("m", "edge:xl")}


def test_a_reduced_photograph_is_offered_only_where_the_whole_one_would_come_too_late() -> None:
    reduced = {"edge:l@224": (59.0, 3.0)}
    assert first_models({"edge:l": (60.0, 3.0)} | reduced, (30.0, 1.0)) == {("m", "edge:l")}
    assert first_models({"edge:l": (80.0, 3.0)} | reduced, (30.0, 1.0)) == {("m", "edge:l@224")}


def test_where_no_model_can_run_the_first_path_says_why() -> None:
    timed = Deadline(Front(POINTS), Single("m"), Front(POINTS), Front(), "always", "always")
    steps = drawn(timed, POINTS, np.random.default_rng(2020))(Evidence(None, None, Outlook(100.0, {}, None)))
    assert next(steps).models == ("m",)
