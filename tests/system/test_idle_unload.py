"""The real daemon, and models that are unloaded while nobody asks for them: memory, loads, deadlines, damage."""

from typing import Any

import pytest

from tests.system.daemons import Connect, Daemon, Peer, Start
from tests.waiting import until

IDLE = "[models]\nidle_unload_s = 0.2\n"


def models(peer: Peer) -> dict[str, dict[str, Any]]:
    """What the status tells of each model."""
    return {model["name"]: model for model in peer.status()["families"][0]["models"]}


def all_unloaded(peer: Peer) -> bool:
    return {model["state"] for model in models(peer).values()} == {"unloaded"}


def loads(daemon: Daemon, model: str) -> int:
    """How often a model was loaded again."""
    return daemon.log.read_text().count(f"event=model-loaded model={model} ")


def test_idle_models_free_their_memory_and_requests_that_come_together_load_one_once(
    start: Start, connect: Connect, jpeg: bytes
) -> None:
    daemon = start()
    peer = connect(daemon)
    loaded_mb = peer.status()["resident_mb"]
    assert {model["state"] for model in models(peer).values()} == {"ready"}, "unless it is asked for, none is unloaded"
    daemon.config.write_text(daemon.config.read_text() + IDLE)
    assert peer.ask({"type": "reload"})["changed"] == ["[models]"]
    until(lambda: all_unloaded(peer))
    assert peer.status()["resident_mb"] < loaded_mb - 10, "the weights alone are 19 MB"
    for number in range(6):
        peer.send({"type": "classify", "id": str(number), "model": "xl"}, jpeg)
    replies = [peer.receive() for _ in range(6)]
    assert {(reply["type"], reply["model"]) for reply in replies} == {("answer", "xl")}
    assert loads(daemon, "xl") == 1
    assert models(peer)["xl"]["load_ms"] > 0
    assert loads(daemon, "xs") == 0


@pytest.mark.slow
def test_models_of_an_engine_host_come_and_go_as_well(start: Start, connect: Connect, jpeg: bytes) -> None:
    daemon = start(f'{IDLE}backend = "onnxruntime-hosted"\nonly = ["xs", "s"]\n')
    peer = connect(daemon)
    for _ in range(2):
        until(lambda: all_unloaded(peer))
        assert peer.classify(jpeg, model="xs")["model"] == "xs"
    assert loads(daemon, "xs") == 2
    assert peer.status()["hosts"][0]["restarts"] == 0
