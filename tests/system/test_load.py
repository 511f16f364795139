"""A real daemon that chooses operating points: cheaper ones under load, and what requests say that they require."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.system.command import jetsel
from tests.system.daemons import Connect, Start
from tests.unit.daemon.families import calibrate, put_family
from tests.waiting import until

BURST = 100


@pytest.mark.slow
def test_a_burst_is_answered_at_cheaper_points_and_what_comes_after_it_is_not(
    start: Start, connect: Connect, jpeg: bytes
) -> None:
    peer = connect(start("[policy]\nlatency_target_ms = 400\n"))
    alone = peer.classify(jpeg)
    assert alone["operating_point"] == alone["policy"] == "cascade"
    pinned = peer.classify(jpeg, policy="cascade")
    assert pinned["operating_point"] is None, "what a request names is honoured"
    for number in range(BURST):
        peer.send({"type": "classify", "id": str(number)}, jpeg)
    replies = [peer.receive() for _ in range(BURST)]
    points = {reply["operating_point"] for reply in replies if reply["type"] == "answer"}
    assert points - {"cascade"}
    assert {reply.get("code", "busy") for reply in replies} == {"busy"}, "none fails, and what is refused is told so"
    until(lambda: peer.classify(jpeg)["operating_point"] == "cascade")
    (family,) = peer.status()["families"]
    assert {point["policy"] for point in family["front"]["points"] if point["answers"]} >= points


FIGURES = {
    "single:cat-s": {"top1": 0.5, "mean_ms": 1.0, "mean_mj": 1000.0, "runs": {"cat-s": 1.0}},
    "single:cat-l": {"top1": 0.9, "mean_ms": 2.0, "mean_mj": 4000.0, "runs": {"cat-l": 1.0}},
}


def models(folder: Path) -> tuple[str, str, str]:
    """Write two models, with figures that are not what they are; return the lines that have them served."""
    put_family(folder, "cats", "cat-s", "cat-l")
    energies = {"energies_mj": {"cat-s": 1000.0, "cat-l": 4000.0}, "energies_half_mj": {"cat-s": 1.0, "cat-l": 2.0}}
    calibrate(folder, "cats", figures=FIGURES, default_policy="single:cat-l", **energies)
    return "[models]", "starter = false", f'paths = ["{folder}"]'


def test_the_cheapest_path_that_has_what_was_asked_for_answers_or_it_is_said_what_came_nearest(
    start: Start, connect: Connect, tmp_path: Path, jpeg: bytes
) -> None:
    daemon = start("\n".join(models(tmp_path / "cats")) + "\n")
    peer = connect(daemon)

    def asked(**fields: Any) -> tuple[str, str]:
        answer = peer.classify(jpeg, **fields)
        return answer.get("policy", "failure"), answer.get("model") or answer["code"]

    assert asked(least_accuracy=0.4) == ("requirements", "cat-s")
    assert asked(least_accuracy=0.6, deadline_ms=60_000) == ("requirements", "cat-l")
    assert asked(least_accuracy=0.5, most_energy_mj=1000) == ("requirements", "cat-s")
    assert asked(least_accuracy=0.6, most_energy_mj=1000) == ("failure", "unmet-requirements")
    assert asked(least_accuracy=0.6, model="cat-l") == ("failure", "bad-request")
    answer = peer.classify(jpeg, least_accuracy=0.6, explain=True)
    assert "single:cat-l takes least time" in answer["because"]
    assert "requirements" in answer["explanation"]["policy_because"]
    photograph = tmp_path / "cat.jpg"
    photograph.write_bytes(jpeg)
    options = ("--least-accuracy", "0.95", "--most-energy-mj", "500", "--endpoint", daemon.endpoint)
    refused = jetsel("classify", *options, photograph)
    assert refused.returncode == 1
    for said in ("0.95: single:cat-l comes nearest with 0.9", "500 mJ: single:cat-s comes nearest", "edge.url"):
        assert said in refused.stderr
