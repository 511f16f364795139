"""What a family promises of its errors: the level that a request gets, and which paths can keep it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jetsel.artefact.promise import MissingPromise, Promise, Promises
from jetsel.base.config import Config, PolicySettings
from jetsel.base.errors import RequirementsError
from jetsel.daemon.deciding import policy_for
from jetsel.daemon.family import ServedFamily
from jetsel.daemon.status import family_status
from jetsel.policies.cascade import Cascade, rungs_of
from jetsel.policies.deadline import Deadline
from jetsel.policies.front import Front, Point
from jetsel.policies.requirements import Requirements
from jetsel.policies.single import Single
from jetsel.policies.with_edge import edge_point
from jetsel.policies.with_promise import WithPromise
from jetsel.wire import Classify
from tests.unit.daemon.families import calibrate, put_family, served_cats

FIGURES = {
    name: {"top1": accuracy, "mean_ms": ms, "mean_mj": None, "runs": {}}
    for name, accuracy, ms in (("single:s", 0.7, 1.0), ("single:l", 0.9, 3.0), ("cascade", 0.89, 2.0))
}


def promises(answered: float, *, level: float = 0.05) -> Promises:
    return Promises((Promise(level, 1.5, (), answered, 0.03),), (MissingPromise(0.01, 900),), 300)


KEPT = {"cascade": promises(0.8), "single:l": promises(0.85)}


def served(tmp_path: Path, config: Config | None = None, **changes: Any) -> ServedFamily:
    folder = put_family(tmp_path / "cats", "cats", "s", "l")
    calibrate(folder, "cats", figures=FIGURES, **{"promises": KEPT, **changes})
    return served_cats(folder, config)


def wrapped(family: ServedFamily, **fields: Any) -> Any:
    request = Classify(1, "a", **fields)
    return family.promises.guarantee(policy_for(family, request), request.wrong_at_most)


def test_the_request_goes_before_the_family_and_that_before_the_configuration(tmp_path: Path) -> None:
    config = Config(policy=PolicySettings(wrong_at_most=0.005))
    family = served(tmp_path, config, wrong_at_most=0.05)
    assert isinstance(wrapped(family), WithPromise)
    assert not isinstance(wrapped(family, wrong_at_most=1.0), WithPromise), "1 asks for no promise"
    lacking = served(tmp_path, config)
    with pytest.raises(RequirementsError, match=r"the lowest level that is calibrated is 0.01"):
        wrapped(lacking)
    cascade = lacking.policies["cascade"]
    assert "calibrated is 0.01" in (lacking.promises.reason_missing(cascade) or ""), "the log says it at the start"
    assert family.promises.reason_missing(cascade) is None
    assert family_status(family, 0, 0).wrong_at_most == 0.05
    assert [one.answered for one in family_status(family, 0, 0).promises] == [0.8]


def test_what_cannot_be_promised_says_why(tmp_path: Path) -> None:
    family = served(tmp_path)
    with pytest.raises(RequirementsError, match="about 600 more images of the same kind"):
        wrapped(family, wrong_at_most=0.01)
    with pytest.raises(RequirementsError, match="single:s was not calibrated for it; cascade and single:l were"):
        wrapped(family, model="s", wrong_at_most=0.05)
    with pytest.raises(RequirementsError, match="has no promises: jetsel calibrate IMAGES"):
        wrapped(served(tmp_path, promises={}), wrong_at_most=0.05)


def test_a_request_with_a_deadline_or_requirements_gets_the_paths_that_promise(tmp_path: Path) -> None:
    family = served(tmp_path)
    timed = wrapped(family, deadline_ms=50.0, wrong_at_most=0.05)
    assert isinstance(timed, Deadline)
    points = timed.front.points
    assert [point.policy.name for point in points] == ["single:l", "cascade"]
    assert points[0].accuracy == 0.9, "what the promises answer was seen by the images that tested them"
    assert all(isinstance(policy, WithPromise) for policy in (*(point.policy for point in points), timed.otherwise))
    asked = family.policies["deadline"]
    assert isinstance(asked, Deadline)
    may_send = family.promises.guarantee(replace(asked, edge=Front((edge_point("edge:xl", 0.9),))), 0.05)
    assert isinstance(may_send, Deadline)
    assert may_send.edge == Front(), "nothing is promised of what the edge answers"
    required = wrapped(family, least_accuracy=0.5, wrong_at_most=0.05)
    assert isinstance(required, Requirements)
    assert [point.policy.name for point in required.front.points] == ["single:l", "cascade"]
    assert "only single:l, cascade can promise" in (required.promise or "")


def test_every_operating_point_keeps_the_promise_and_what_cannot_make_it_is_none(tmp_path: Path) -> None:
    ways = (Single("l"), Cascade("cascade", rungs_of(["s", "l"], [0.8])), Single("s"))
    costs_ms = (3.0, 2.0, 1.0)
    found = [Point(way, 0.9, ms, {way.models[0]: 1.0}, 0.0, None) for way, ms in zip(ways, costs_ms, strict=True)]
    family, front = served(tmp_path), Front(tuple(found), 2)
    kept = family.promises.guarantee_front(front, 0.05)
    assert [point.policy.name for point in kept.points] == ["single:l", "cascade"]
    assert all(isinstance(point.policy, WithPromise) for point in kept.points)
    assert kept.floor == 1, "load leads to the cheapest that is left"
    assert family.promises.guarantee_front(front, 1.0) is front
    with pytest.raises(RequirementsError, match="about 600 more images"):
        family.promises.guarantee_front(front, 0.01)
