"""One family as it is served: its calibration, what decides by default, and which policy decides about a request."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jetsel.base.config import Config, PolicySettings
from jetsel.base.errors import BadRequestError, UnknownModelError, UnknownPolicyError
from jetsel.daemon.deciding import policy_for, policy_reason
from jetsel.daemon.family import ServedFamily
from jetsel.daemon.status import family_status
from jetsel.policies.requirements import Requirements
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
