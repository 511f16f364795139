"""`jetsel models optimize` as its first user finds it, on views of three photographs."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import onnxruntime
import pytest

from jetsel.zoo import scan, verify
from tests.system.command import jetsel
from tests.system.test_calibrate import configured, put


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
    derived = model.manifest.derived_from
    assert derived is not None
    assert (derived.name, derived.recipe[:24]) == ("s", "8-bit numbers, ranges of")
    assert {"QuantizeLinear", "DequantizeLinear"} <= {node.op_type for node in onnx.load(str(model.path)).graph.node}
    onnxruntime.InferenceSession(model.path)
    again = jetsel(*command(home, "--method", "int8", "--images", str(home / "photos")))
    assert again.returncode != 0
    assert "has a model s-int8 already, and nothing was made" in again.stderr


@pytest.mark.parametrize(
    ("method", "count", "said"),
    [
        ("int8", 0, "int8 needs about 100 images, and there are 0: name a folder"),
        ("int8", 40, "int8 needs about 100 images, and there are 40: name a folder"),
        ("int4", 0, "'int4' is not one of"),
    ],
)
def test_what_is_missing_is_named_before_anything_is_made(
    home: Path, tmp_path: Path, method: str, count: int, said: str
) -> None:
    more = ["--images", str(put(tmp_path / "few", count))] if count else []
    done = jetsel(*command(home, "--method", method, *more, model="xs"))
    assert done.returncode != 0
    assert said in " ".join(done.stderr.split())
