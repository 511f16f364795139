"""A reload over files that are wrong: what serves goes on serving, and the reply says what is the matter."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from jetsel.zoo import STARTER
from tests.system.daemons import Connect, Daemon, Peer, Start
from tests.system.hosts import hosts_of
from tests.waiting import until


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


def configure(daemon: Daemon, was: str, now: str) -> None:
    text = daemon.config.read_text()
    assert was in text
    daemon.config.write_text(text.replace(was, now))


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


def test_no_thread_that_a_reload_leaves_stands_behind_the_requests(
    start: Start, connect: Connect, jpeg: bytes, models: Path
) -> None:
    daemon = start(configuration(models))
    peer = connect(daemon)
    usual = niceness(daemon)
    for was, now in (("false", "false\nthreads = 2"), ("threads = 2", "threads = 1")):
        configure(daemon, was, now)
        assert reload(peer)["changed"]
        assert peer.classify(jpeg)["type"] == "answer"
        until(lambda: niceness(daemon) == usual)  # the thread that loaded may still be ending, which comes last too
    assert len(usual) == 1


def niceness(daemon: Daemon) -> set[int]:
    """The nice values that its threads have (proc(5), /proc/PID/stat, field 19; the second is in parentheses)."""
    found = set()
    for stat in Path(f"/proc/{daemon.process.pid}/task").glob("*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            found.add(int(stat.read_text().rpartition(") ")[2].split()[16]))
    return found


@pytest.mark.parametrize("more", ["threads = 2", 'backend = "onnxruntime-hosted"'])
def test_a_reload_that_would_take_a_serving_model_away_is_refused_and_changes_nothing(
    start: Start, connect: Connect, jpeg: bytes, models: Path, more: str
) -> None:
    daemon = start(configuration(models))
    peer = connect(daemon)
    cut(models / "s.onnx")
    configure(daemon, "starter = false", f"starter = false\n{more}")
    refused = reload(peer)
    assert refused["code"] == "reload-failed"
    assert "model s of family starter serves now" in refused["message"]
    assert "sha256 is " in refused["message"]
    assert peer.classify(jpeg)["model"] == "s", "requests that name no model go on as before"
    assert peer.classify(jpeg, model="s")["type"] == "answer"
    shutil.copy(STARTER / "s.onnx", models)
    assert reload(peer)["changed"] == ["[models]"]
    assert peer.classify(jpeg)["model"] == "s"


def test_a_model_whose_file_is_gone_is_named_with_the_reason_and_another_answers_who_names_none(
    start: Start, connect: Connect, jpeg: bytes, models: Path
) -> None:
    peer = connect(start(configuration(models)))
    (models / "s.onnx").unlink()
    changed = reload(peer)["changed"]
    assert "model s removed" in changed
    assert any("s.json" in line and "there is no file s.onnx" in line for line in changed)
    assert peer.classify(jpeg)["model"] == "xs"
    assert reload(peer)["changed"] == [], "it is told once"


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
    assert answer["explanation"]["policy_because"].startswith("s is unavailable, which single:s cannot do without")
    shutil.copy(STARTER / "s.onnx", models)
    assert "model s" not in str(reload(peer)["changed"])
    assert peer.classify(jpeg)["model"] == "s"


def test_two_families_with_the_same_weights_keep_each_its_own_engine_and_counts(
    start: Start, connect: Connect, jpeg: bytes, models: Path, tmp_path: Path
) -> None:
    other = Path(shutil.copytree(models, tmp_path / "other"))
    labels = (other / "labels.tsv").read_text().rstrip("\n") + " too\n"
    (other / "labels.tsv").write_text(labels)
    for name in ("xs", "s"):
        manifest = json.loads((other / f"{name}.json").read_text()) | {"family": "other"}
        if "labels_sha256" in manifest:
            manifest["labels_sha256"] = sha256(labels.encode()).hexdigest()
        (other / f"{name}.json").write_text(json.dumps(manifest))
    peer = connect(start(configuration(models, other)))

    def runs() -> dict[tuple[str, str], int]:
        return {(f["name"], m["name"]): m["runs"] for f in peer.status()["families"] for m in f["models"]}

    for _ in range(3):
        assert peer.classify(jpeg, family="starter", model="s")["type"] == "answer"
    for _ in range(2):
        assert reload(peer)["changed"] == []
    assert peer.classify(jpeg, family="other", model="s")["type"] == "answer"
    found = runs()
    assert (found["starter", "s"], found["other", "s"]) == (3, 1)


def test_a_host_that_dies_again_and_again_while_a_reload_loads_costs_no_model(
    start: Start, connect: Connect, jpeg: bytes, models: Path
) -> None:
    daemon = start(configuration(models, more='backend = "onnxruntime-hosted"\n'))
    peer, admin = connect(daemon), connect(daemon)
    configure(daemon, "starter = false", "starter = false\nthreads = 2")
    admin.send({"type": "reload"})
    killed: set[int] = set()
    while not admin.socket.poll(0) and len(killed) < 6:  # after fifteen it would be given up
        for process in set(hosts_of(daemon)) - killed:
            killed.add(process)
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
    reply = admin.receive()
    assert reply["type"] == "reloaded" or reply["code"] == "reload-failed", reply
    for model in ("xs", "s"):
        until(lambda model=model: peer.classify(jpeg, model=model)["type"] == "answer")  # once the host is back
