"""Files that cannot be written or are gone under a running daemon: it serves on, and says why."""

from __future__ import annotations

import shutil
from pathlib import Path

from jetsel.zoo import STARTER
from tests.system.daemons import Connect, Start


def test_a_log_that_cannot_be_written_costs_nothing_but_the_log(start: Start, connect: Connect, jpeg: bytes) -> None:
    onto_a_full_disk = ["/bin/sh", "-c", 'exec "$0" "$@" 2>/dev/full']
    daemon = start("[log]\nrequests = true\n", prefix=onto_a_full_disk)
    peer = connect(daemon)
    assert {peer.classify(jpeg)["type"] for _ in range(20)} == {"answer"}
    assert peer.ask({"type": "reload"})["type"] == "reloaded"
    assert daemon.stop() == 0


def test_a_model_whose_weights_are_gone_is_served_until_a_reload_and_again_when_they_are_back(
    start: Start, connect: Connect, jpeg: bytes, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(STARTER, tmp_path / "models"))
    weights, aside = folder / "s.onnx", tmp_path / "aside.onnx"
    peer = connect(start(f'[models]\nstarter = false\npaths = ["{folder}"]\n'))
    weights.rename(aside)
    assert peer.classify(jpeg, model="s")["type"] == "answer", "what is loaded needs no file"
    changed = peer.ask({"type": "reload"})["changed"]
    assert "model s removed" in changed
    assert any("s.json" in line and "there is no file s.onnx" in line for line in changed)
    assert "s.onnx" in peer.status()["broken"][0]
    assert peer.classify(jpeg, model="s")["code"] == "unknown-model"
    assert peer.classify(jpeg)["type"] == "answer"
    aside.rename(weights)
    assert peer.ask({"type": "reload"})["type"] == "reloaded"
    assert peer.classify(jpeg, model="s")["type"] == "answer"
