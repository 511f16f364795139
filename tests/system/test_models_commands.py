"""`jetsel models` as processes: a daemon takes up what was added, and pulling names what it needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.contract.tiny import PIXELS, matrix_model
from tests.system.command import jetsel
from tests.system.daemons import Connect, Start

PLAIN = ["--mean", "0.485,0.456,0.406", "--std", "0.229,0.224,0.225"]


@pytest.fixture
def state(tmp_path: Path) -> dict[str, str]:
    """Where the owner's models and calibrations are for the commands and the daemon of one test."""
    return {"STATE_DIRECTORY": str(tmp_path / "state")}


@pytest.mark.slow
def test_a_daemon_serves_what_was_added_and_no_longer_what_was_removed(
    start: Start, connect: Connect, jpeg: bytes, state: dict[str, str], tmp_path: Path
) -> None:
    onnx, labels = tmp_path / "drinks.onnx", tmp_path / "drinks.txt"
    onnx.write_bytes(matrix_model(np.eye(PIXELS, 3, dtype=np.float32)))
    labels.write_text("tea\ncoffee\nmilk\n")
    daemon = start(env=state)
    peer = connect(daemon)
    assert peer.classify(jpeg, family="drinks")["code"] == "unknown-family"
    added = jetsel("models", "add", onnx, "--labels", labels, *PLAIN, env=state)
    assert (added.returncode, added.stderr) == (0, "")
    assert peer.ask({"type": "reload"})["type"] == "reloaded"
    answer = peer.classify(jpeg, family="drinks")
    assert (answer["type"], answer["model"]) == ("answer", "drinks")
    assert answer["label"] in {"tea", "coffee", "milk"}
    assert peer.classify(jpeg)["family"] == "drinks"  # the owner's only family
    removed = jetsel("models", "remove", "drinks", "--yes", env=state)
    assert (removed.returncode, removed.stderr) == (0, "")
    assert peer.classify(jpeg, family="drinks")["type"] == "answer"
    assert peer.ask({"type": "reload"})["type"] == "reloaded"
    assert peer.classify(jpeg, family="drinks")["code"] == "unknown-family"


def test_pulling_without_torch_names_what_to_install(state: dict[str, str]) -> None:
    hidden = "import sys; sys.modules['torch'] = None; from jetsel.__main__ import main; main()"
    command = [sys.executable, "-c", hidden, "models", "pull", "torchvision:resnet18"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **state}, check=False)
    assert done.returncode == 1
    assert "pip install 'jetsel[export]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    done = jetsel("models", "pull", "resnet18", env=state)
    assert "or torchvision:MODEL as in" in done.stderr
