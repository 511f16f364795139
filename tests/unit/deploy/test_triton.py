"""What deploy/triton writes, run as Triton would, and what it refuses."""

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from deploy.triton.write_repository import write
from jetsel.base.config import parse
from jetsel.base.weights import Head
from jetsel.engines import Backends
from jetsel.zoo import STARTER, scan
from jetsel.zoo.adding import add_head
from jetsel.zoo.labels import labels_from_names
from jetsel.zoo.placing import NewFamily
from tests.contract.tiny import HEIGHT_PX, PIXELS, WIDTH_PX, matrix_model
from tests.unit.zoo.making import described, put_model

FAMILY = scan([STARTER]).families["starter"]


def session(folder: Path) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession((folder / "1/model.onnx").read_bytes(), providers=["CPUExecutionProvider"])


def outputs(folder: Path) -> list[str]:
    return re.findall(r'output {\s*name: "(\w+)"', (folder / "config.pbtxt").read_text())


def test_a_head_of_the_owner_s_becomes_the_last_layer_of_the_file(tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    backbone = FAMILY.models[0]
    width = backbone.manifest.embedding_width
    assert width is not None
    head = Head(draw.normal(size=(width, 2)).astype(np.float32), np.array([0.5, -0.5], np.float32))
    family = NewFamily("colours", labels_from_names(["blue", "red"], "drawn"), "drawn")
    added = add_head(backbone, head.content(), 100, family, tmp_path / "models", None)
    write(tmp_path / "out", scan([tmp_path / "models"]).families["colours"].labels, [added], "onnx")
    folder = tmp_path / "out/colours.xs"
    batch = draw.normal(size=(2, 3, 64, 64)).astype(np.float32)
    expected = Backends().open("onnxruntime", added.weights(2), concurrency=1, threads=1).infer(batch).logits
    (found,) = session(folder).run(outputs(folder), {"image": batch})
    assert found == pytest.approx(expected, abs=1e-4)
    assert (folder / "labels.txt").read_text() == "blue\nred\n"


def test_a_model_of_one_photograph_at_a_time_is_not_batched(tmp_path: Path) -> None:
    weights = matrix_model(np.ones((PIXELS, 3), np.float32), batch=1)
    size = {"height_px": HEIGHT_PX, "width_px": WIDTH_PX}
    changes = {"sha256": hashlib.sha256(weights).hexdigest(), "input": described()["input"] | size}
    put_model(tmp_path / "models", weights=weights, **changes)
    family = scan([tmp_path / "models"]).families["pets"]
    write(tmp_path / "out", family.labels, family.models, "onnx")
    config = (tmp_path / "out/pets.small/config.pbtxt").read_text()
    assert "max_batch_size: 0" in config
    assert f'name: "images" data_type: TYPE_FP32 dims: [1, 3, {HEIGHT_PX}, {WIDTH_PX}]' in config
    assert "dynamic_batching" not in config


def run(*words: object, status: int = 0) -> str:
    command = [sys.executable, "deploy/triton/write_repository.py", *map(str, words), "--family", "starter"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    return done.stderr if status else done.stdout


def test_what_is_printed_is_a_configuration_s_section(tmp_path: Path) -> None:
    out = tmp_path / "new/out"
    mapped = parse(run(out, "--model", "s", "--model", "xl")).edge.models
    assert {name: (model.remote, model.input, model.output) for name, model in mapped.items()} == {
        "s": ("starter.s", "tensor", "logits"),
        "xl": ("starter.xl", "tensor", "logits"),
    }
    assert sorted(path.name for path in out.iterdir()) == ["starter.s", "starter.xl"]
    assert list(session(out / "starter.s").run(outputs(out / "starter.s"), {"image": np.zeros((3, 3, 64, 64), "<f4")}))


def test_what_cannot_be_written_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("the owner's")
    assert "name a folder that is not there yet" in run(tmp_path, status=1)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert "there is no model xx" in run(tmp_path / "out", "--model", "xx", status=1)
    assert not (tmp_path / "out").exists()
