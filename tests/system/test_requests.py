"""What the running daemon answers: every kind of image, request and bad input; under load, and by requirements."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jetsel.policies.registry import KIND
from tests.system.command import jetsel
from tests.system.daemons import Connect, Peer, Start, drawn, encoded
from tests.unit.daemon.families import calibrate, put_family
from tests.waiting import until


def test_classify_while_the_models_load_is_told_to_retry(start: Start, connect: Connect, jpeg: bytes) -> None:
    daemon = start(ready=False)
    until(daemon.path.exists)
    peer = connect(daemon)
    seen = []
    while not seen or seen[-1] != "answer":
        reply = peer.classify(jpeg)
        seen.append(reply["type"] if reply["type"] == "answer" else reply["code"])
        assert reply["type"] == "answer" or reply["retry"] is True
    assert seen[0] == "loading"
    assert set(seen) == {"loading", "answer"}


def test_an_answer_has_every_field_and_they_agree(peer: Peer, jpeg: bytes) -> None:
    answer = peer.classify(jpeg, id="a-1", top_k=3, explain=True)
    assert answer["type"] == "answer"
    assert (answer["v"], answer["id"], answer["family"]) == (1, "a-1", "starter")
    assert [answer["label"], answer["wnid"], answer["probability"]] == list(answer["top_k"][0].values())
    probabilities = [ranked["probability"] for ranked in answer["top_k"]]
    assert probabilities == sorted(probabilities, reverse=True)
    assert len(probabilities) == 3
    assert 0 < sum(probabilities) <= 1 + 1e-6
    assert answer["model"] == answer["ran"][-1]["model"]
    assert len(answer["stages_ms"]["inference"]) == len(answer["ran"])
    spent = answer["stages_ms"]
    parts = ("queue", "decode", "choice", "waiting")
    assert min(spent[part] for part in parts) >= 0
    assert spent["total"] >= sum(spent[part] for part in parts) + sum(spent["inference"]) - 1e-3, "rounded, each"
    assert (answer["energy_mj"], answer["energy_estimated"]) == (None, False)
    assert "calibrat" in answer["energy_reason"]
    assert answer["out_of_conditions"] == []
    assert (answer["width_px"], answer["height_px"]) == (160, 120)
    assert answer["explanation"]["steps"]


def test_raw_pixels_give_what_the_same_pixels_in_a_file_give(peer: Peer) -> None:
    picture = drawn(3)
    wanted = peer.classify(encoded(picture, ".png"), model="xs")
    height, width = picture.shape[:2]
    layout = {"width": width, "height": height}
    padded = np.zeros((height, width * 3 + 5), np.uint8)
    padded[:, : width * 3] = picture.reshape(height, -1)
    raw = peer.classify(padded.tobytes(), model="xs", pixels={"format": "bgr8", "stride": width * 3 + 5, **layout})
    assert raw["top_k"] == wanted["top_k"]


def test_every_policy_answers(peer: Peer, jpeg: bytes) -> None:
    policies = peer.status()["families"][0]["policies"]
    known = set(KIND)
    assert known - {"multiplexer", "front"} <= set(policies)  # not asked for; it was fitted before that came
    for policy in policies:
        answer = peer.classify(jpeg, policy=policy)
        assert answer["type"] == "answer", answer
        assert answer["policy"] == policy
        reads = policy.startswith("chain")
        assert (answer["stages_ms"]["features"] is not None) == reads


GOOD = {"v": 1, "type": "classify", "id": "x"}
BAD_MESSAGES: dict[str, tuple[list[bytes], str, str | None]] = {
    "no JSON": ([b"{nonsense", b"img"], "bad-request", None),
    "no image": ([json.dumps(GOOD).encode()], "bad-request", "x"),
    "an empty image": ([json.dumps(GOOD).encode(), b""], "bad-image", "x"),
    "twenty parts": ([json.dumps(GOOD).encode(), *[b"part"] * 19], "bad-request", "x"),
}


def test_a_bad_message_is_named_and_the_next_one_answered(peer: Peer, jpeg: bytes) -> None:
    for frames, code, identity in BAD_MESSAGES.values():
        peer.socket.send_multipart(frames)
        failure = peer.receive()
        assert (failure["type"], failure["code"], failure["id"]) == ("failure", code, identity)
        assert failure["retry"] is False
        assert len(failure["message"]) > 10
        assert peer.classify(jpeg)["type"] == "answer"


def test_a_deadline_that_no_path_can_meet_is_answered_before_any_work(peer: Peer, jpeg: bytes) -> None:
    for _ in range(3):
        peer.classify(jpeg, model="xl")
    reply = peer.classify(jpeg, model="xl", deadline_ms=0.01)
    assert reply["code"] == "deadline", reply
    assert reply["retry"] is False
    assert "no path" in reply["message"]


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
