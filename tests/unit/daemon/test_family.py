"""One family as it is served: its calibration, which policy decides about a request, and what it promises."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from jetsel.artefact.calibration import ExpectedStatistics
from jetsel.artefact.promise import MissingPromise, Promise, Promises
from jetsel.base.config import Config, PolicySettings
from jetsel.base.errors import BadRequestError, RequirementsError, UnknownModelError, UnknownPolicyError
from jetsel.daemon.deciding import policy_for, policy_reason
from jetsel.daemon.drift import FEWEST, Drift
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

SINGLES = ["single:s", "single:m", "single:l"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return put_family(tmp_path / "cats", "cats", "s", "m", "l", sides_px=(4, 8, 6))


def served(folder: Path, **sections: Any) -> ServedFamily:
    return served_cats(folder, Config(**sections))


def test_without_a_calibration_the_most_expensive_model_answers(folder: Path) -> None:
    family = served(folder)
    assert family.defaults.policy == "single:l"
    assert list(family.policies) == SINGLES
    assert (family.defaults.fallback, family.defaults.on_doubt) == ("l", "use")
    assert {queue.temperature for queue in family.driver.queues.values()} == {1.0}
    assert "without a calibration" in family.defaults.because
    assert family.decode_px == 8, "of the largest input"


def test_a_calibration_that_belongs_to_the_models_decides(folder: Path) -> None:
    made = calibrate(folder, "cats")
    family = served(folder)
    assert list(family.policies) == [*SINGLES, "chain", "cascade"]
    assert family.defaults.policy == "cascade"
    assert family.defaults.because == "the cascade did best"
    assert {name: queue.temperature for name, queue in family.driver.queues.items()} == dict(made.temperatures)
    assert str(family.in_use) == "shipped with the models, of 2026-11-20"
    assert family.policies["cascade"].models == ("s", "l")


def test_the_configuration_s_choice_stands_above_the_calibration_s(folder: Path) -> None:
    calibrate(folder, "cats")
    family = served(folder, policy=PolicySettings(default="chain", on_doubt="refuse", fallback="m"))
    assert family.defaults.policy == "chain"
    assert family.defaults.because == "it is set in the configuration"
    assert (family.defaults.fallback, family.defaults.on_doubt) == ("m", "refuse")
    assert family_status(family, 0, 0).fallback is None, "in doubt it refuses"


FIGURES = {
    name: {"top1": accuracy, "mean_ms": ms, "mean_mj": mj, "runs": {}}
    for name, accuracy, ms, mj in (
        ("cascade", 0.9, 3.0, 60.0),
        ("single:m", 0.8, 2.0, None),
        ("single:s", 0.5, 1.5, None),
    )
}


@pytest.fixture
def adaptive(folder: Path) -> ServedFamily:
    calibrate(folder, "cats", figures=FIGURES)
    return served(folder, policy=PolicySettings(latency_target_ms=100.0))


def test_status_has_the_operating_points_and_which_are_used(adaptive: ServedFamily) -> None:
    adaptive.points_used.count_answer("single:m", is_cheapest=True)
    front = family_status(adaptive, 0, 0).front
    assert [msgspec.structs.astuple(point) for point in front.points] == [
        ("cascade", 0.9, 3.0, 60.0, 0),
        ("single:m", 0.8, 2.0, None, 1),
        ("single:s", 0.5, 1.5, None, 0),
    ]
    assert (front.last, front.floor) == ("single:m", "single:m")


def test_a_default_below_the_least_accuracy_is_told(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    calibrate(folder, "cats", figures=FIGURES)
    served(folder, policy=PolicySettings(latency_target_ms=100.0, least_accuracy=0.99))
    assert "least_accuracy is 0.99" in caplog.text


def test_status_has_no_operating_points_if_another_policy_stands_in_or_there_is_no_target(
    adaptive: ServedFamily, folder: Path
) -> None:
    assert family_status(served(folder), 0, 0).front is None
    adaptive.defaults = replace(adaptive.defaults, policy="single:m")
    assert family_status(adaptive, 0, 0).front is None


def asked(**fields: Any) -> Classify:
    return Classify(1, "a", **fields)


def test_a_request_for_what_is_not_there_is_told_what_is(folder: Path) -> None:
    family = served(folder)
    with pytest.raises(UnknownModelError, match=r"family cats has no model 'xl' \(did you mean l\?\): s, m, l"):
        policy_for(family, asked(model="xl"))
    with pytest.raises(UnknownPolicyError, match=r"no policy 'single:x'.*; it has single:s, single:m, single:l"):
        policy_for(family, asked(policy="single:x"))
    with pytest.raises(UnknownPolicyError, match=r"cats has no calibration, .*: make it with jetsel calibrate IMAGES"):
        policy_for(family, asked(policy="cascade"))
    with pytest.raises(UnknownPolicyError, match="send one of them"):
        policy_for(family, asked(policy="single:s", model="s"))


def test_what_a_request_requires_goes_with_it_and_with_nothing_that_it_names(folder: Path) -> None:
    calibrate(folder, "cats")
    family = served(folder)
    request = asked(least_accuracy=0.7, deadline_ms=50.0)
    policy = policy_for(family, request)
    assert isinstance(policy, Requirements)
    assert (policy.least_accuracy, policy.most_energy_mj) == (0.7, None)
    assert "requirements" in policy_reason(family, request, policy)
    for named in ({"model": "m"}, {"policy": "cascade"}):
        with pytest.raises(BadRequestError, match="without"):
            policy_for(family, asked(most_energy_mj=5.0, **named))


def test_a_cheaper_operating_point_is_explained(folder: Path) -> None:
    calibrate(folder, "cats")
    family = served(folder)
    point = family.policies["single:m"]
    assert "led from cascade to this operating point" in policy_reason(family, asked(), point)
    assert policy_reason(family, asked(), family.policies["cascade"]) == family.defaults.because


MEASURED = {
    name: {"top1": accuracy, "mean_ms": ms, "mean_mj": None, "runs": {}}
    for name, accuracy, ms in (("single:s", 0.7, 1.0), ("single:l", 0.9, 3.0), ("cascade", 0.89, 2.0))
}


def promises(answered: float, *, level: float = 0.05) -> Promises:
    return Promises((Promise(level, 1.5, (), answered, 0.03),), (MissingPromise(0.01, 900),), 300)


KEPT = {"cascade": promises(0.8), "single:l": promises(0.85)}


def promising(tmp_path: Path, config: Config | None = None, **changes: Any) -> ServedFamily:
    folder = put_family(tmp_path / "cats", "cats", "s", "l")
    calibrate(folder, "cats", figures=MEASURED, **{"promises": KEPT, **changes})
    return served_cats(folder, config)


def wrapped(family: ServedFamily, **fields: Any) -> Any:
    request = Classify(1, "a", **fields)
    return family.promises.guarantee(policy_for(family, request), request.wrong_at_most)


def test_the_request_goes_before_the_family_and_that_before_the_configuration(tmp_path: Path) -> None:
    config = Config(policy=PolicySettings(wrong_at_most=0.005))
    family = promising(tmp_path, config, wrong_at_most=0.05)
    assert isinstance(wrapped(family), WithPromise)
    assert not isinstance(wrapped(family, wrong_at_most=1.0), WithPromise), "1 asks for no promise"
    lacking = promising(tmp_path, config)
    with pytest.raises(RequirementsError, match=r"the lowest level that is calibrated is 0.01"):
        wrapped(lacking)
    cascade = lacking.policies["cascade"]
    assert "calibrated is 0.01" in (lacking.promises.reason_missing(cascade) or ""), "the log says it at the start"
    assert family.promises.reason_missing(cascade) is None
    assert family_status(family, 0, 0).wrong_at_most == 0.05
    assert [one.answered for one in family_status(family, 0, 0).promises] == [0.8]


def test_what_cannot_be_promised_says_why(tmp_path: Path) -> None:
    family = promising(tmp_path)
    with pytest.raises(RequirementsError, match="about 600 more images of the same kind"):
        wrapped(family, wrong_at_most=0.01)
    with pytest.raises(RequirementsError, match="single:s was not calibrated for it; cascade and single:l were"):
        wrapped(family, model="s", wrong_at_most=0.05)
    with pytest.raises(RequirementsError, match="has no promises: jetsel calibrate IMAGES"):
        wrapped(promising(tmp_path, promises={}), wrong_at_most=0.05)


def test_a_request_with_a_deadline_or_requirements_gets_the_paths_that_promise(tmp_path: Path) -> None:
    family = promising(tmp_path)
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
    family, front = promising(tmp_path), Front(tuple(found), 2)
    kept = family.promises.guarantee_front(front, 0.05)
    assert [point.policy.name for point in kept.points] == ["single:l", "cascade"]
    assert all(isinstance(point.policy, WithPromise) for point in kept.points)
    assert kept.floor == 1, "load leads to the cheapest that is left"
    assert family.promises.guarantee_front(front, 1.0) is front
    with pytest.raises(RequirementsError, match="about 600 more images"):
        family.promises.guarantee_front(front, 0.01)


def test_many_more_doubts_than_calibrated_are_drift() -> None:
    drift = Drift(ExpectedStatistics({}, {}), "cascade", 4096)
    for number in range(FEWEST - 1):
        drift.count_doubt(0.8, is_in_doubt=number % 2 == 0)
    assert drift.status().hint is None
    assert drift.status().refusals is not None
    assert drift.status().refusals.seen is None, "they are few"
    drift.count_doubt(0.8, is_in_doubt=False)
    status = drift.status()
    assert (status.refusals.seen, status.refusals.is_significant) == (0.5, True)
    assert (status.hint or "").startswith("50% of the requests are in doubt; 20% were expected: recalibrate")
    steady = Drift(ExpectedStatistics({}, {}), "cascade", 4096)
    draw = np.random.default_rng(0)
    for _ in range(500):
        steady.count_doubt(0.8, is_in_doubt=bool(draw.random() < 0.2))
    assert steady.status().hint is None
