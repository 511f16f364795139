"""/metrics of one status: what the operating points of a family become."""

import msgspec

from jetsel import wire
from jetsel.gateway.metrics import metrics
from jetsel.wire.status import DriftStatus, FrontPoint, FrontStatus, RefusalShift
from tests.unit.client.peer import Seen, status
from tests.unit.hollow import hollow

REPLY = status(Seen(wire.Status(1, "x"), None))


def samples(front: FrontStatus | None) -> dict[tuple[str, str], float]:
    """Return the values of family f by name and operating point."""
    family = msgspec.structs.replace(REPLY.families[0], front=front)
    found = metrics(msgspec.structs.replace(REPLY, families=[family]))
    return {(one.name, one.labels.get("point", "")): one.value for kind in found for one in kind.samples}


def test_answers_are_counted_by_operating_point_and_the_time_at_the_cheapest_is_known() -> None:
    points = [FrontPoint("cascade", 0.9, 12.4, 60.0, 5), FrontPoint("cascade:2", 0.7, 2.0, None, 3)]
    found = samples(FrontStatus(points, "cascade:2", "cascade:2", 301.0))
    assert found["jetsel_operating_point_answers_total", "cascade"] == 5
    assert found["jetsel_operating_point_answers_total", "cascade:2"] == 3
    assert found["jetsel_cheapest_point_seconds", ""] == 301.0


def test_a_family_without_a_front_has_no_operating_points() -> None:
    assert not any("point" in name for name, _ in samples(None))


def test_the_share_in_doubt_stands_beside_the_calibrated_one() -> None:
    drift = DriftStatus(refusals=RefusalShift(200, 0.25, 0.28125, is_significant=False))
    family = msgspec.structs.replace(REPLY.families[0], drift=drift)
    found = metrics(msgspec.structs.replace(REPLY, families=[family]))
    shares = {one.name: one.value for kind in found for one in kind.samples if one.name.startswith("jetsel_in_doubt")}
    assert shares == {"jetsel_in_doubt_share": 0.25, "jetsel_in_doubt_calibrated": 0.28125}


def test_what_a_daemon_of_another_version_does_not_send_has_no_value() -> None:
    for reply in (wire.StatusReply(1, "a", "ready"), hollow()):
        found = {one.name: one.value for kind in metrics(reply) for one in kind.samples}
        assert (found["jetsel_up"], found["jetsel_ready"]) == (1.0, 1.0)
        assert {"jetsel_uptime_seconds", "jetsel_queue_requests", "jetsel_lost_replies_total"}.isdisjoint(found)
        assert {name for name, value in found.items() if value == 0} <= {
            "jetsel_out_of_conditions",
            "jetsel_recalibration_hint",
        }
