"""The `jetsel` command as a process: what it prints, on which stream, and the exit status; and `jetsel doctor`."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.system.command import COMMAND, jetsel
from tests.system.daemons import Daemon, Start, drawn, encoded


def lines(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def pictures(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"drawn {seed}.jpg" for seed in range(5)]
    for seed, path in enumerate(paths):
        path.write_bytes(encoded(drawn(seed)))
    return paths


def test_every_option_reaches_the_daemon(shared_daemon: Daemon, pictures: list[Path]) -> None:
    options = ["--json", "--family", "starter", "--policy", "chain", "--top-k", 3, "--deadline-ms", 20_000]
    options += ["--on-doubt", "use", "--explain", "--jobs", 2]
    done = jetsel("classify", *pictures, *options, env={"JETSEL_ENDPOINT": shared_daemon.endpoint})
    assert done.returncode == 0, done.stderr
    for one in lines(done):
        assert one["policy"] == "chain"
        assert len(one["top_k"]) == 3
        assert one["explanation"]["features"], "the chain reads features"
    boxes = ["--box", "0,0,1.5,1", "--box=0.5,0,0.5,1.2", "--boxes-unit", "shares", "--model", "m"]
    done = jetsel("classify", pictures[0], "--json", *boxes, "--endpoint", shared_daemon.endpoint)
    first, second = lines(done)
    assert (first["path"], second["path"]) == (f"{pictures[0]} 0,0,1.5,1", f"{pictures[0]} 0.5,0,0.5,1.2")
    assert second["width_px"] * 2 == first["width_px"]
    assert [run["model"] for run in first["ran"]] == ["m"]


def test_one_missing_file_fails_and_the_others_are_told_in_order(shared_daemon: Daemon, pictures: list[Path]) -> None:
    paths = [pictures[0], pictures[0].with_name("nowhere.jpg"), pictures[1]]
    done = jetsel("classify", *paths, "--json", "--endpoint", shared_daemon.endpoint)
    assert done.returncode == 1
    first, missing, last = found = lines(done)
    assert [one["path"] for one in found] == [str(path) for path in paths]
    assert missing["error"] == {"code": "unreadable", "message": "No such file or directory", "retry": False}
    for one in (first, last):
        assert (one["type"], one["label"], one["energy_mj"]) == ("answer", one["top_k"][0]["label"], None)
        assert one["latency_ms"] >= one["stages_ms"]["total"] > 0


def test_what_the_daemon_refuses_is_one_line_and_status_1(shared_daemon: Daemon, pictures: list[Path]) -> None:
    bad = pictures[0].with_name("bad.jpg")
    bad.write_bytes(b"hello, I am text")
    for arguments, said in (
        ([bad], "is text, not a JPEG, PNG or WebP file"),
        ([pictures[0], "--deadline-ms", "0.000001"], "passed before"),
        ([pictures[0], "--least-accuracy", "0.99"], "none is configured (edge.url)"),
        ([pictures[0], "--most-energy-mj", "5"], "5 mJ: unknown for every path"),
    ):
        done = jetsel("classify", *arguments, "--endpoint", shared_daemon.endpoint)
        assert (done.returncode, done.stdout) == (1, "")
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_where_no_daemon_listens_one_line_says_how_to_start_one(tmp_path: Path) -> None:
    for command in (["classify", "cat.jpg"], ["top"]):
        done = jetsel(*command, "--endpoint", f"ipc://{tmp_path}/x.sock")
        assert (done.returncode, done.stdout) == (1, "")
        assert "jetsel serve" in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_status_in_words_and_in_json(shared_daemon: Daemon) -> None:
    words = jetsel("status", "--endpoint", shared_daemon.endpoint)
    assert words.returncode == 0, words.stderr
    assert f"is ready: process {shared_daemon.process.pid}" in words.stdout
    assert "family starter: 100 classes" in words.stdout
    found = json.loads(jetsel("status", "--json", "--endpoint", shared_daemon.endpoint).stdout)
    assert (found["type"], found["state"], found["pid"]) == ("status", "ready", shared_daemon.process.pid)


def test_reload_says_what_changed_and_what_is_wrong(start: Start) -> None:
    daemon = start('[policy]\ndefault = "single:xs"\n')
    text = daemon.config.read_text()
    assert jetsel("reload", "--endpoint", daemon.endpoint).stdout == "reloaded; nothing changed\n"
    daemon.config.write_text(text.replace("single:xs", "single:m"))
    assert jetsel("reload", "--endpoint", daemon.endpoint).stdout == "reloaded; changed: [policy]\n"
    daemon.config.write_text(text.replace("single:xs", "single:huge"))
    done = jetsel("reload", "--endpoint", daemon.endpoint)
    assert (done.returncode, done.stdout) == (1, "")
    assert "the running configuration remains" in done.stderr
    assert "single:huge" in done.stderr


def test_models_are_listed_with_their_notice() -> None:
    words = jetsel("models", "list")
    assert words.returncode == 0, words.stderr
    assert "family starter: 100 classes" in words.stdout
    assert "multiply-accumulates" in words.stdout
    assert "research only" in " ".join(words.stdout.split())
    found = json.loads(jetsel("models", "list", "--json").stdout)
    assert [family["name"] for family in found["families"]] == ["starter"]
    model = found["families"][0]["models"][0]
    assert {"name", "version", "family", "sha256", "input", "labels", "provenance"} <= set(model)


@pytest.mark.parametrize(
    ("library", "words", "status", "extra"),
    [
        ("fsspec", "repo init repository --sign key", 2, "jetsel[fleet]"),
        ("nacl.signing", "repo key new", 2, "jetsel[agent]"),
        ("torch", "models pull torchvision:resnet18", 1, "jetsel[export]"),
        ("paho", "watch 0", 2, "jetsel[gateway]"),
    ],
)
def test_without_a_library_a_command_names_what_to_install(
    tmp_path: Path, library: str, words: str, status: int, extra: str
) -> None:
    (tmp_path / "key").write_text("0" * 64)
    program = f"import sys; sys.modules[{library!r}] = None; from jetsel.__main__ import main; main()"
    command = [sys.executable, "-c", program, *words.split()]
    environment = {**os.environ, "STATE_DIRECTORY": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert done.returncode == status
    assert f"pip install '{extra}'" in done.stderr
    assert "Traceback" not in done.stderr


def classifying(pictures: list[Path], daemon: Daemon, *more: str) -> subprocess.Popen[str]:
    """The command at work: it has told of the first picture."""
    command = [*COMMAND, "classify", "--json", *map(str, pictures), "--endpoint", daemon.endpoint, *more]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert json.loads(process.stdout.readline())["path"] == str(pictures[0])
    return process


def test_the_reader_of_the_output_may_leave_early(shared_daemon: Daemon, pictures: list[Path]) -> None:
    with classifying(pictures * 40, shared_daemon) as process:
        process.stdout.close()
        assert process.wait(60) == 1
        assert process.stderr.read() == ""


def test_ctrl_c_ends_it_quietly(shared_daemon: Daemon, pictures: list[Path]) -> None:
    with classifying(pictures * 400, shared_daemon, "--jobs", "1") as process:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said


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
