"""What deadlines and an edge server will give: the daemon's driver answers a recording in virtual time."""

from __future__ import annotations

import pytest

from calibration.papers.mdinference.device import World
from calibration.papers.mdinference.networks import Network, Normal, TwoState
from calibration.papers.mdinference.predictions import Predicted, predict
from jetsel.base.config import Config, EdgeModel, EdgeSettings
from jetsel.policies.deadline import Deadline, Duplicate
from jetsel.policies.front import Front, Point
from jetsel.policies.single import Single
from jetsel.policies.with_edge import edge_point
from jetsel.zoo import Family, scan
from tests.unit.calibrate.recorded import COSTS_MS, drawn
from tests.unit.daemon.families import put_family

IMAGES = 60
RECORDING = drawn(1, IMAGES)
RIGHT = dict(zip(COSTS_MS, RECORDING.right.mean(axis=0).tolist(), strict=True))
AROUND_MS = 5.0


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Family:
    return scan([put_family(tmp_path_factory.mktemp("models") / "cats", "cats", *COSTS_MS)]).families["cats"]


def predicted(
    family: Family, deadline_ms: float, network: Network | None, duplicate: Duplicate = "when-needed"
) -> Predicted:
    """Answer with s and m on the device and, with a network, l on the edge server."""
    config = Config(edge=EdgeSettings(url="http://edge", models={"l": EdgeModel(remote="cats.l")}))
    front = Front(
        tuple(Point(Single(name), RIGHT[name], COSTS_MS[name], {name: 1.0}, 0.0, None) for name in ("m", "s"))
    )
    there = Front(() if network is None else (edge_point("edge:l", RIGHT["l"]),))
    policy = Deadline(front, Single("m"), front, there, "always", duplicate)
    known = (network or Normal(0, 0), [10_000] * IMAGES, [(64, 48)] * IMAGES, AROUND_MS)
    world = World(RECORDING, family, ("s", "m"), {}, None if network is None else config, *known)
    return predict(policy, world, deadline_ms, 7)


@pytest.mark.parametrize(("deadline_ms", "model"), [(100.0, "m"), (7.0, "s")])
def test_a_device_alone_answers_with_the_best_model_that_the_deadline_allows(
    family: Family, deadline_ms: float, model: str
) -> None:
    found = predicted(family, deadline_ms, None)
    assert (found.accuracy, found.effective) == pytest.approx((RIGHT[model], RIGHT[model]))
    assert (found.on_time, found.from_edge) == (1.0, 0.0)
    assert found.mean_ms == pytest.approx(AROUND_MS + COSTS_MS[model], rel=0.05)


def test_an_edge_server_answers_that_is_better_and_in_time(family: Family) -> None:
    found = predicted(family, 100.0, Normal(20, 0), "never")
    assert (found.accuracy, found.from_edge, found.on_time) == (pytest.approx(RIGHT["l"]), 1.0, 1.0)
    assert found.mean_ms == pytest.approx(AROUND_MS + 20 + COSTS_MS["l"], rel=0.05)
    assert predicted(family, 100.0, Normal(400, 0)).from_edge == 0.0, "nothing is sent that cannot come in time"


def test_the_device_answers_by_the_deadline_where_the_edge_server_is_late(family: Family) -> None:
    network = TwoState(Normal(20, 0), Normal(500, 0), 0.2, 0.8)
    found = predicted(family, 100.0, network, "always")
    assert found.on_time == 1.0
    assert 0.3 < found.from_edge < 1.0
    assert found.mean_ms < 100.0
    alone = predicted(family, 100.0, network, "never")
    assert alone.from_edge < found.from_edge
