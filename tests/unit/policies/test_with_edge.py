"""Which policies a family has where an edge is configured: those by time, and those that meet requirements."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from jetsel.artefact.calibration import Calibration
from jetsel.base.config import EdgeModel, EdgeSettings
from jetsel.policies import Policy, catalogue
from jetsel.policies.front import points_here
from jetsel.policies.with_edge import deadline_policy, requirements_policy
from tests.unit.daemon.families import calibration_of, put_family
from tests.unit.policies.animals import multiplexer

EDGE = EdgeSettings(models={"l": EdgeModel(remote="cats.l"), "m": EdgeModel(remote="cats.m")})
THERE = ["edge:l", "edge:m"]
ACCURACIES = {"single:s": 0.5, "single:m": 0.6, "single:l": 0.9, "multiplexer": 0.85, "cascade": 0.8}


@pytest.fixture
def calibration(tmp_path: Path) -> Calibration:
    figures = {name: {"top1": one, "mean_ms": 2.0, "mean_mj": 7.0, "runs": {}} for name, one in ACCURACIES.items()}
    folder = put_family(tmp_path / "cats", "cats", "s", "m", "l")
    made = calibration_of(folder, "cats", figures=figures)
    return replace(made, parts={**made.parts, "multiplexer": multiplexer(3)})


def test_a_multiplexer_takes_the_time_of_its_models_and_so_it_is_a_path(calibration: Calibration) -> None:
    offered: dict[str, Policy] = catalogue(["s", "m", "l"], calibration)
    assert "multiplexer" in offered
    points = points_here(offered, calibration, ["s", "m", "l"])
    assert {point.policy.name: point.accuracy for point in points} == ACCURACIES
    timed = deadline_policy(offered, calibration, ["s", "m", "l"], THERE, EDGE)
    assert [point.policy.name for point in timed.singles.points] == ["single:l", "single:m", "single:s"]
    assert [(point.policy.name, point.accuracy) for point in timed.edge.points] == [("edge:l", 0.9), ("edge:m", 0.6)]


def test_requirements_are_met_by_what_the_calibration_has_figures_of_and_by_the_edge(calibration: Calibration) -> None:
    offered: dict[str, Policy] = catalogue(["s", "m", "l"], calibration)
    made = requirements_policy(offered, calibration, ["s", "m"], THERE, EDGE, None)
    points = [*made.front.points, *made.edge.points]
    assert {point.policy.name: (point.accuracy, point.calibrated_ms, point.energy_mj) for point in points} == {
        "single:s": (0.5, 2.0, 7.0),
        "single:m": (0.6, 2.0, 7.0),
        "edge:l": (0.9, None, 0.0),
        "edge:m": (0.6, None, 0.0),
    }, "the cascade and the chain need l, which is not here"
    sure = replace(EDGE, allow="low-confidence")
    first = requirements_policy(offered, calibration, ["s"], THERE[:1], sure, None)
    points = [*first.front.points, *first.edge.points]
    assert [(point.policy.models, point.energy_mj) for point in points] == [(("s",), 7.0), (("s", "edge:l"), 7.0)]


def test_without_a_calibration_the_single_models_are_there_and_nothing_is_known_of_them() -> None:
    made = requirements_policy({}, None, ["s", "m"], ["edge:l"], EDGE, "no calibration")
    assert [(point.policy.name, point.accuracy) for point in (*made.front.points, *made.edge.points)] == [
        ("single:s", None),
        ("single:m", None),
        ("edge:l", None),
    ]
    assert "jetsel calibrate" in str(made.no_accuracy)
    assert made.no_energy == "no calibration"
