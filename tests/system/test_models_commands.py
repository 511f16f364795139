"""`jetsel models` as processes: what was added or optimized is served, and what is missing is named."""

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from jetsel.artefact.installed import install
from jetsel.zoo import scan, verify
from tests.contract.tiny import PIXELS, matrix_model
from tests.system.command import jetsel
from tests.system.daemons import Connect, Start
from tests.system.test_calibrate import configured, put
from tests.unit.daemon.families import calibration_of
from tests.unit.zoo.lights import lights, put_light_model

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


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with photographs, a configuration, and a folder for models of the owner's."""
    folder = tmp_path_factory.mktemp("home")
    put(folder / "photos", 120)
    (folder / "models").mkdir()
    configured(folder, f'paths = ["{folder}/models"]\nonly = ["xs", "s"]\n')
    return folder


def command(home: Path, *more: str, model: str = "s") -> list[str]:
    return ["models", "optimize", model, "--config", str(home / "own.toml"), *more]


@pytest.mark.slow
def test_a_model_in_8_bits_is_made_compared_and_added_once(home: Path) -> None:
    done = jetsel(*command(home, "--method", "int8", "--images", str(home / "photos"), "--json"))
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["model"], said["directory"]) == ("s-int8", str(home / "models"))
    assert said["agreement"] > 0.8
    assert 0 <= said["right"] <= 1
    assert said["file_bytes"] < 0.6 * said["parent_file_bytes"], "whose file holds 16 bits a weight"
    assert any("only" in note for note in said["notes"]), "the configuration leaves it out"
    (model,) = scan([home / "models"]).families["starter"].models
    verify(model)
    derived = model.manifest.provenance.derived_from
    assert (derived.name, derived.recipe[:24]) == ("s", "8-bit numbers, ranges of")
    assert {"QuantizeLinear", "DequantizeLinear"} <= {node.op_type for node in onnx.load(str(model.path)).graph.node}
    onnxruntime.InferenceSession(model.path)
    again = jetsel(*command(home, "--method", "int8", "--images", str(home / "photos")))
    assert again.returncode != 0
    assert "has a model s-int8 already, and nothing was made" in again.stderr


@pytest.mark.parametrize("count", [0, 40])
def test_too_few_images_are_refused_before_anything_is_made(home: Path, tmp_path: Path, count: int) -> None:
    more = ["--images", str(put(tmp_path / "few", count))] if count else []
    done = jetsel(*command(home, "--method", "int8", *more, model="xs"))
    assert done.returncode != 0
    assert f"int8 needs about 100 images, and there are {count}: name a folder" in " ".join(done.stderr.split())


@pytest.mark.slow
def test_a_model_whose_preprocessing_is_corrected_is_calibrated_again_before_it_is_used(
    start: Start, connect: Connect, tmp_path: Path
) -> None:
    for name in ("small", "large"):
        put_light_model(tmp_path / "models", name, "ultralytics" if name == "large" else "keras-tf", is_doubted=True)
    folders = f'paths = ["{tmp_path}/models"]\ncalibrations = "{tmp_path}/calibrations"\n'
    owners, figures = tmp_path / "calibrations", {"mean_ms": 1.0, "mean_mj": None, "runs": {}}
    points = {f"single:{name}": figures | {"top1": top1} for name, top1 in (("small", 0.8), ("large", 0.9))}
    made = calibration_of(tmp_path / "models", "lights", parts={}, figures=points, default_policy="single:large")
    install(made, owners, "lights")
    daemon = start(f"[models]\nstarter = false\n{folders}")
    peer, bright = connect(daemon), (lights(tmp_path / "images", 2) / "bright" / "001.png").read_bytes()
    dark = (tmp_path / "images" / "dark" / "000.png").read_bytes()
    answer = peer.classify(dark)
    assert (answer["model"], answer["label"]) == ("large", "bright"), "it takes everything for bright"
    done = jetsel("models", "set", "large", "--like", "keras-tf", "--config", daemon.config)
    assert done.returncode == 0, done.stderr
    assert "run `jetsel calibrate IMAGES`" in done.stdout
    assert peer.ask({"type": "reload"})["type"] == "reloaded"
    assert [(peer.classify(one)["model"], peer.classify(one)["label"]) for one in (dark, bright)] == [
        ("small", "dark"),
        ("small", "bright"),
    ]
    (family,) = peer.status()["families"]
    assert (family["default_policy"], family["not_calibrated"]) == ("single:small", ["large"])
    assert "model large has changed. Run `jetsel calibrate IMAGES`" in family["calibration"]
    assert "model large has changed. Run `jetsel calibrate IMAGES`" in daemon.log.read_text()
    listed = jetsel("models", "list", "--json", "--config", daemon.config)
    assert json.loads(listed.stdout)["families"][0]["not_calibrated"] == ["large"]
    assert peer.classify(dark, model="large")["label"] == "dark"
    done = jetsel("calibrate", lights(tmp_path / "photos", 80), "--config", daemon.config, "--force")
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    (family,) = peer.status()["families"]
    assert (family["not_calibrated"], family["calibration"][:8]) == ([], "number 2")
