"""`jetsel doctor` as a process: real interpreters, a real daemon, and installations that are broken in one place."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.system.command import jetsel
from tests.system.daemons import Daemon
from tests.unit.engines.hosting.programs import program, says

KEYS = ["section", "name", "state", "said", "repair"]
HOSTING = "interpreters of the engine host"


def examined(folder: Path, config: str, **environment: str) -> tuple[int, list[dict[str, Any]]]:
    """Run it with this configuration; return its exit status and what it found."""
    path = folder / "jetsel.toml"
    path.write_text(config)
    done = jetsel("doctor", "--json", "--config", path, env=environment)
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def named(found: list[dict[str, Any]], section: str, name: str) -> dict[str, Any]:
    (one,) = [finding for finding in found if (finding["section"], finding["name"]) == (section, name)]
    return one


def test_a_sound_installation_has_no_failure_and_a_missing_daemon_is_a_warning(tmp_path: Path) -> None:
    status, found = examined(
        tmp_path, f'[server]\nendpoint = "ipc://{tmp_path}/s"\n[host]\ninterpreter = "{sys.executable}"\n'
    )
    assert [finding for finding in found if finding["state"] == "failed"] == []
    assert status == 0
    assert all(list(finding) == KEYS for finding in found)
    assert named(found, "daemon", "answers")["state"] == "warning"
    assert named(found, HOSTING, "onnxruntime")["said"] == f"hosted by {sys.executable}"
    assert named(found, "models", "family starter")["state"] == "ok"


def test_the_daemon_that_answers_is_told_of(shared_daemon: Daemon) -> None:
    done = jetsel("doctor", "--config", shared_daemon.config, env={"PATH": "/nonexistent"})
    assert done.returncode == 0, done.stdout
    assert f"ok       answers: {shared_daemon.endpoint}" in done.stdout
    assert f"ready, process {shared_daemon.process.pid}" in done.stdout


def test_it_finds_an_interpreter_by_itself(tmp_path: Path) -> None:
    program(tmp_path / "python3.6", "kill -ILL $$", version="printf 3.6.9")
    gpu = {"name": "NVIDIA Tegra X2", "compute_capability": "6.2", "fast_fp16": True, "fast_int8": False}
    modules = {"numpy": "1.19.4", "tensorrt": "8.2.1.8", "pycuda": "2022.1"}
    program(tmp_path / "python3.8", says("3.8.10", modules, gpu=gpu))
    status, found = examined(tmp_path, '[models]\nbackend = "tensorrt"\n', PATH=str(tmp_path))
    assert named(found, HOSTING, "tensorrt")["said"] == f"hosted by {tmp_path}/python3.8"
    refused = named(found, HOSTING, f"tensorrt: {tmp_path}/python3.6")
    assert "SIGILL" in refused["said"]
    assert named(found, "TensorRT", "version")["said"] == "8.2.1.8"
    assert named(found, "board", "gpu")["said"] == "NVIDIA Tegra X2"
    assert named(found, "engines", "xl")["repair"] == "run: jetsel models build xl"
    assert ({finding["section"] for finding in found if finding["state"] == "failed"}, status) == ({"engines"}, 1)


def test_tensorrt_that_is_wanted_and_not_there_fails_with_the_repair(tmp_path: Path) -> None:
    lacking = program(tmp_path / "python", says("3.6.9", {"numpy": "1.13.3", "tensorrt": "8.2.1.8", "pycuda": None}))
    config = f'[models]\nbackend = "tensorrt"\n[host]\ninterpreter = "{lacking}"\n'
    status, found = examined(tmp_path, config)
    assert status == 1
    assert named(found, HOSTING, "tensorrt")["state"] == "failed"
    assert "pip install pycuda==2022.1" in named(found, HOSTING, f"tensorrt: {lacking}")["repair"]


def test_a_configuration_that_cannot_be_read_fails_and_the_rest_is_still_looked_at(tmp_path: Path) -> None:
    status, found = examined(tmp_path, "[server]\nworkes = 1\n", PATH="/nonexistent")
    assert status == 1
    assert "server.workes" in named(found, "configuration", "file")["said"]
    assert named(found, "models", "family starter")["state"] == "ok"


def test_a_library_that_is_broken_is_named_and_not_met_with_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("raise ImportError('libopenblas.so.0: cannot open shared object file')")
    environment = {"PYTHONPATH": str(tmp_path), "PATH": "/nonexistent"}
    done = jetsel("doctor", env=environment)
    assert (done.returncode, done.stderr) == (1, "")
    assert "failed   numpy: does not import: libopenblas.so.0" in done.stdout
    found = json.loads(jetsel("doctor", "--json", env=environment).stdout)
    assert named(found, "installation", "pyzmq")["state"] == "ok"


def test_text_has_each_line_whole_and_each_repair_under_it(tmp_path: Path) -> None:
    path = tmp_path / ("long" * 50 + ".toml")
    done: subprocess.CompletedProcess[str] = jetsel("doctor", "--config", path, env={"PATH": "/nonexistent"})
    lines = done.stdout.splitlines()
    assert lines[0] == "configuration"
    assert lines[1].startswith(f"  failed   file: {path}: No such file or directory")
    assert lines[2].startswith("           repair: ")
