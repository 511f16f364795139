"""A reload over files that are wrong: what serves goes on serving, and the reply says what is the matter."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from jetsel.zoo import STARTER
from tests.system.daemons import Connect, Peer, Start


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Two models and no calibration: the most expensive one, s, answers who names none."""
    folder = tmp_path / "models"
    folder.mkdir()
    for name in ("xs.onnx", "xs.json", "s.onnx", "s.json", "labels.tsv"):
        shutil.copy(STARTER / name, folder / name)
    return folder


def configuration(*models: Path, more: str = "") -> str:
    paths = ", ".join(f'"{folder}"' for folder in models)
    return f"[models]\nstarter = false\npaths = [{paths}]\n{more}"


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:1000])


def reload(peer: Peer) -> dict[str, Any]:
    return peer.ask({"type": "reload"})


def test_damaged_weights_of_a_model_that_runs_on_are_told_by_each_reload(
    start: Start, connect: Connect, jpeg: bytes, models: Path
) -> None:
    peer = connect(start(configuration(models)))
    cut(models / "s.onnx")
    for _ in range(2):
        (told,) = reload(peer)["changed"]
        assert told.startswith(f"weights of s are damaged, and it runs on: {models / 's.onnx'}: sha256 is ")
        assert peer.classify(jpeg, model="s")["type"] == "answer"
    shutil.copy(STARTER / "s.onnx", models)
    assert reload(peer)["changed"] == []


def test_a_new_model_that_does_not_load_is_named_and_never_the_default(
    start: Start, connect: Connect, jpeg: bytes, models: Path
) -> None:
    (models / "s.json").rename(models / "aside")
    peer = connect(start(configuration(models)))
    assert peer.classify(jpeg)["model"] == "xs"
    (models / "aside").rename(models / "s.json")
    cut(models / "s.onnx")
    changed = reload(peer)["changed"]
    assert any(line.startswith("model s of starter is unavailable: ") and "sha256" in line for line in changed)
    assert any(line.startswith("single:xs is the default") and "top1" in line for line in changed)
    assert peer.classify(jpeg)["model"] == "xs"
    told = peer.status()["families"][0]
    assert told["default_policy"] == {"top1": "single:xs", "top5": "single:xs"}
    assert told["fallback"] == "xs"
    assert reload(peer)["changed"] == [], "it is told once"


def test_a_default_that_the_configuration_names_and_that_cannot_run_has_another_answer(
    start: Start, connect: Connect, jpeg: bytes, models: Path
) -> None:
    cut(models / "s.onnx")
    more = '[policy]\ndefault = "single:s"\nfallback = "s"\n'
    peer = connect(start(configuration(models, more=more)))
    answer = peer.classify(jpeg, explain=True)
    assert answer["model"] == "xs"
    assert answer["explanation"]["policy_because"].startswith("single:s cannot do without s")
    shutil.copy(STARTER / "s.onnx", models)
    assert "model s" not in str(reload(peer)["changed"])
    assert peer.classify(jpeg)["model"] == "s"
