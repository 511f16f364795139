"""`jetsel doctor` as a process: real interpreters, a real daemon, and installations that are broken in one place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.doubles.interpreter import make_interpreter
from tests.system.command import jetsel


def examined(folder: Path, config: str, **environment: str) -> tuple[int, dict[tuple[str, str], dict[str, Any]]]:
    """Run it with this configuration; return its exit status and what it found, by section and name."""
    path = folder / "jetsel.toml"
    path.write_text(config)
    done = jetsel("doctor", "--json", "--config", path, env=environment)
    assert done.stderr == ""
    return done.returncode, {(one["section"], one["name"]): one for one in json.loads(done.stdout)}


def test_a_sound_installation_has_no_failure_and_a_missing_daemon_is_a_warning(tmp_path: Path) -> None:
    status, found = examined(tmp_path, f'[server]\nendpoint = "ipc://{tmp_path}/s"\n')
    assert [finding for finding in found.values() if finding["state"] == "failed"] == []
    assert status == 0
    assert found["daemon", "answers"]["state"] == "warning"
    assert found["models", "family starter"]["state"] == "ok"
    assert {section for section, _ in found} == {"installation", "board", "models", "TensorRT", "daemon"}


def test_tensorrt_that_is_used_has_its_interpreter_and_the_engines_that_are_to_be_built(tmp_path: Path) -> None:
    config = '[models]\nbackend = "tensorrt"\n[host]\ninterpreter = "{}"\n'
    status, found = examined(tmp_path, config.format(make_interpreter(tmp_path / "sound", "8.2")))
    assert "NVIDIA Tegra X2" in found["TensorRT", "Python"]["said"]
    assert found["TensorRT", "xl"]["repair"] == "run: jetsel models build xl"
    assert status == 1


def test_a_library_that_is_broken_is_named_and_not_met_with_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("raise ImportError('libopenblas.so.0: cannot open shared object file')")
    environment = {"PYTHONPATH": str(tmp_path), "PATH": "/nonexistent"}
    done = jetsel("doctor", env=environment)
    assert (done.returncode, done.stderr) == (1, "")
    assert "failed   numpy: does not import: libopenblas.so.0" in done.stdout
    assert jetsel("doctor", "--json", env=environment).returncode == 1


def test_text_has_each_line_whole_and_each_repair_under_it(tmp_path: Path) -> None:
    path = tmp_path / ("long" * 50 + ".toml")
    done = jetsel("doctor", "--config", path, env={"PATH": "/nonexistent"})
    lines = done.stdout.splitlines()
    assert lines[1].startswith(f"  failed   configuration: {path}: No such file or directory")
    assert lines[2].startswith("           repair: ")
