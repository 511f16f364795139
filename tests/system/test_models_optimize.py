"""`jetsel models optimize` as its first user finds it, on views of three photographs."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import onnxruntime
import pytest

from jetsel.zoo import scan, verify
from tests.system.command import COMMAND, jetsel
from tests.system.test_calibrate import configured, put
from tests.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with photographs, a configuration, and a folder for models of the owner's."""
    folder = tmp_path_factory.mktemp("home")
    put(folder / "photos", 210)
    (folder / "models").mkdir()
    configured(folder, f'paths = ["{folder}/models"]\nonly = ["xs", "s"]\n')
    return folder


def command(home: Path, *more: str, methods: str = "int8,smaller,clustered") -> list[str]:
    own = ["--photos", str(home / "photos"), "--config", str(home / "own.toml"), "--work", str(home / "work")]
    return ["models", "optimize", "s", *own, "--methods", methods, "--max-drop", "100", *more]


def test_candidates_are_made_measured_and_added_when_asked_for(home: Path) -> None:
    before = subprocess.Popen([*COMMAND, *command(home)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: any((home / "work" / "candidates").glob("*.json")) or before.poll() is not None)
    before.send_signal(signal.SIGKILL)
    before.wait()
    kept = {path: path.stat().st_mtime_ns for path in (home / "work" / "candidates").glob("*.json")}
    done = jetsel(*command(home, "--json"))
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert all(path.stat().st_mtime_ns == changed for path, changed in kept.items())
    judged = {one["name"]: one for one in said["verdict"]["models"]}
    assert {"xs", "s", "s-int8", "s-56px", "s-56px-int8", "s-clustered"} <= set(judged)
    assert judged["s-int8"]["agreement"] > 0.8
    assert judged["s"]["drop"] == 0
    sizes = {name: file["bytes"] for name, file in said["files"].items()}
    assert sizes["s-clustered"] < 0.6 * sizes["s"]  # whose file holds 16 bits a weight
    assert said["files"]["s-56px"]["operations"] < said["files"]["s"]["operations"]
    assert said["added"] == []
    assert not list((home / "models").iterdir())
    assert "int8" in Path(said["report"]).read_text(encoding="utf-8")

    again = jetsel(*command(home, "--add", "s-int8"))
    assert again.returncode == 0, again.stderr
    assert "added to" in again.stdout
    (model,) = scan([home / "models"]).families["starter"].models
    verify(model)
    derived = model.manifest.derived_from
    assert derived is not None
    assert derived.name == "s"
    assert derived.recipe.startswith("8-bit numbers, ranges of ")
    taken = {node.op_type for node in _nodes(model.path)}
    assert {"QuantizeLinear", "DequantizeLinear", "Conv"} <= taken
    onnxruntime.InferenceSession(model.path)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--methods", "int4"], "there is no int4"),
        (["--target-ms", "1000"], "meets the target already"),
        (["--add", "s-int5"], "there is no candidate s-int5"),
    ],
)
def test_what_cannot_be_is_told_with_what_to_do(home: Path, more: list[str], said: str) -> None:
    done = jetsel(*command(home, *more, methods="clustered"))
    assert done.returncode != 0
    assert said in done.stderr


def test_candidates_are_never_judged_by_what_they_learned_from(home: Path, tmp_path: Path) -> None:
    done = jetsel(*command(home, "--learn-on", str(tmp_path), methods="clustered"))
    assert done.returncode != 0
    assert "no images there" in done.stderr
    put(tmp_path, 60)
    assert jetsel(*command(home, methods="clustered")).returncode == 0
    done = jetsel(*command(home, "--learn-on", str(tmp_path), methods="clustered"))
    assert done.returncode != 0
    assert "another folder with --work" in done.stderr


def test_too_few_photographs_are_refused_before_anything_is_made(home: Path, tmp_path: Path) -> None:
    few = put(tmp_path / "few", 40)
    for more, said in (
        (["--photos", str(few)], "100 are the minimum"),
        (["--photos", str(home / "photos"), "--learn-on", str(few)], "50 are the minimum"),
    ):
        done = jetsel("models", "optimize", "s", *more, "--work", str(tmp_path / "work"))
        assert done.returncode != 0
        assert said in done.stderr
    assert not (tmp_path / "work").exists()


def _nodes(path: Path) -> list[object]:
    import onnx

    return list(onnx.load(str(path)).graph.node)
