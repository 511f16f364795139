"""`jetsel models build` as a command: what it builds, reports and refuses, what stays when it ends, what is served."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jetsel.zoo import STARTER
from tests.doubles.interpreter import make_interpreter
from tests.processes import children_of
from tests.system.command import COMMAND, jetsel
from tests.system.daemons import Connect, Start
from tests.system.hosts import host_of, hosts_of
from tests.waiting import until

EXIT_USAGE, EXIT_INTERRUPTED = 2, 130
SLOW = {"build_ms": 600_000}


@pytest.fixture(scope="module")
def interpreters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("interpreters")
    return {version: make_interpreter(folder / version, version) for version in ("8.2", "8.6")}


Configure = Callable[..., Path]


@pytest.fixture
def configure(interpreters: dict[str, Path], tmp_path: Path) -> Configure:
    """Write a jetsel.toml of the starter's models xs and s, which lie where a test may damage them."""
    shutil.copytree(STARTER, tmp_path / "models")

    def write(version: str = "8.2", backend: str = "tensorrt") -> Path:
        file = tmp_path / "jetsel.toml"
        file.write_text(
            f'[models]\nstarter = false\npaths = ["{tmp_path / "models"}"]\nonly = ["xs", "s"]\nbackend = "{backend}"\n'
            f'[host]\ninterpreter = "{interpreters[version]}"\nengines = "{tmp_path / "engines"}"\n'
        )
        return file

    return write


def build(config: Path, *arguments: object, board: dict[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
    return jetsel("models", "build", "--config", config, *arguments, env={"JETSEL_DOUBLE": json.dumps(board or {})})


def plans(config: Path) -> list[Path]:
    return sorted(path for path in (config.parent / "engines").glob("*.plan") if not path.name.startswith("."))


def test_all_models_of_tensorrt_are_built_and_told_with_their_figures(configure: Configure) -> None:
    config = configure()
    done = build(config)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(plans(config)) == 2
    for name, line in zip(("xs", "s"), lines, strict=False):
        assert line.startswith(f"starter {name}: built in ")
        assert "fp16, " in line
        assert "ONNX Runtime 100.0%" in line
        assert "ms on the device" in line
    assert "jetsel reload" in lines[2]
    assert "TensorRT 8.2.1.8 on NVIDIA Tegra X2" in done.stderr
    assert "building 2 of 2: s" in done.stderr
    assert "--photographs DIR" in done.stderr  # few pictures prove little


def test_one_that_fails_ends_with_status_1_and_the_rest_are_built_once(configure: Configure, tmp_path: Path) -> None:
    config = configure()
    (tmp_path / "models" / "xs.onnx").write_bytes(b"damaged")
    done = build(config)
    assert done.returncode == 1
    assert done.stdout.splitlines()[0].startswith("starter xs: not built: ")
    assert done.stdout.splitlines()[1].startswith("starter s: built in ")
    done = build(config, "--json")
    assert done.returncode == 1
    failed, stands = json.loads(done.stdout)["models"]
    assert (failed["name"], failed["was_built"], "sha256" in failed["fault"]) == ("xs", False, True)
    assert (stands["name"], stands["was_built"], stands["fault"]) == ("s", False, None)
    assert stands["record"]["key"]["tensorrt"] == "8.2.1.8"
    assert stands["record"]["check"]["agreement"] == 1.0
    assert [Path(stands["engine"])] == plans(config)


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("nobody",), 1, "there is no model nobody"),
        ((), EXIT_USAGE, 'write backend = "tensorrt" under [models]'),
    ],
)
def test_what_cannot_be_meant_is_refused(
    configure: Configure, arguments: tuple[str, ...], status: int, words: str
) -> None:
    done = build(configure(backend="onnxruntime"), *arguments)
    assert done.returncode == status
    assert words in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, EXIT_INTERRUPTED), (signal.SIGKILL, -signal.SIGKILL)])
def test_a_command_that_is_ended_leaves_no_engine_and_no_process(
    configure: Configure, number: signal.Signals, status: int
) -> None:
    config = configure()
    command = [*COMMAND, "models", "build", "xs", "--config", str(config)]
    environment = {**os.environ, "JETSEL_DOUBLE": json.dumps(SLOW)}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        while "building 1 of 1: xs" not in (line := process.stderr.readline()):
            assert line, "it ended"
        until(lambda: len(children_of(process.pid)) > 0)
        (host,) = children_of(process.pid)
        process.send_signal(number)
        assert process.wait() == status
        until(lambda: not Path(f"/proc/{host}/fd/0").exists())
    finally:
        process.kill()
        process.communicate()
    assert plans(config) == []
    if number == signal.SIGINT:
        assert [path for path in (config.parent / "engines").iterdir() if path.suffix != ".cache"] == []
    assert build(config, "xs").returncode == 0
    assert len(list((config.parent / "engines").iterdir())) == 3  # the plan, its record, the builder's timings


@pytest.mark.slow
def test_an_engine_that_was_built_again_is_taken_up_by_a_reload(
    configure: Configure, start: Start, connect: Connect, jpeg: bytes
) -> None:
    config = configure()
    assert build(config).returncode == 0
    daemon = start(config.read_text())
    peer = connect(daemon)
    assert peer.classify(jpeg, model="xs")["type"] == "answer"
    assert build(config, "--force", "xs").returncode == 0
    assert peer.ask({"type": "reload"})["type"] == "reloaded"
    assert peer.classify(jpeg, model="xs")["type"] == "answer"
    host = host_of(daemon)
    os.kill(host, signal.SIGKILL)
    until(lambda: hosts_of(daemon) not in ([], [host]))
    until(lambda: {model["state"] for model in peer.status()["families"][0]["models"]} == {"ready"})
