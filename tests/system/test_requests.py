"""What the running daemon answers: each policy, bad input, and under load."""

import pytest

from jetsel.policies.registry import KIND
from tests.system.daemons import Connect, Peer, Start
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


def test_every_policy_answers(peer: Peer, jpeg: bytes) -> None:
    policies = peer.status()["families"][0]["policies"]
    known = set(KIND)
    assert known - {"multiplexer", "front"} <= set(policies)  # not asked for; it was fitted before that came
    for policy in policies:
        answer = peer.classify(jpeg, policy=policy)
        assert answer["type"] == "answer", answer
        assert answer["policy"] == policy
        reads = policy.startswith(("chain", "deadline"))  # that which goes by time may take a point of the chain
        assert (answer["stages_ms"]["features"] is not None) == reads


def test_points_of_the_chain_meet_requirements_and_deadlines(peer: Peer, jpeg: bytes) -> None:
    wanted = peer.classify(jpeg, least_accuracy=0.53, explain=True)  # by day and night: cascades reach 0.50
    assert wanted["stages_ms"]["features"] is not None
    assert "chain" in str(wanted["explanation"])
    timed = peer.classify(jpeg, policy="deadline", deadline_ms=5000.0, explain=True)
    assert timed["operating_point"].startswith("chain")


BURST = 100


@pytest.mark.slow
def test_a_burst_is_answered_at_cheaper_points_and_what_comes_after_it_is_not(
    start: Start, connect: Connect, jpeg: bytes
) -> None:
    peer = connect(start("[policy]\ndefault = 'chain:1'\nlatency_target_ms = 400\n"))
    alone = peer.classify(jpeg)
    assert alone["operating_point"] == alone["policy"] == "chain:1"
    pinned = peer.classify(jpeg, policy="cascade")
    assert pinned["operating_point"] is None, "what a request names is honoured"
    for number in range(BURST):
        peer.send({"type": "classify", "id": str(number)}, jpeg)
    replies = [peer.receive() for _ in range(BURST)]
    points = {reply["operating_point"] for reply in replies if reply["type"] == "answer"}
    assert points - {"chain:1"}
    assert {reply.get("code", "busy") for reply in replies} == {"busy"}, "none fails, and what is refused is told so"
    until(lambda: peer.classify(jpeg)["operating_point"] == "chain:1")
    (family,) = peer.status()["families"]
    assert {point["policy"] for point in family["front"]["points"] if point["answers"]} >= points
