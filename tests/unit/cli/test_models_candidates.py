"""Which models are built as engines; tests/system/test_models_build.py builds them."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from jetsel.base.config import Config, Models
from jetsel.cli.app import app
from jetsel.cli.models.candidates import on_tensorrt
from jetsel.zoo import STARTER, scan


def test_models_of_other_backends_are_not_built() -> None:
    config = Config(models=Models(backends={"s": "tensorrt", "m": "onnxruntime"}))
    found = on_tensorrt("starter", scan([STARTER]).families["starter"].models, 100, config)
    assert [(one.family, one.name, one.classes) for one in found] == [("starter", "s", 100)]


@pytest.mark.parametrize(
    ("method", "words"), [("prune", "prune needs torch: "), ("fp16", "fp16 needs onnxconverter-common")]
)
def test_a_method_whose_library_is_missing_is_refused_before_the_images_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, words: str
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda *_: None)
    done = CliRunner().invoke(app, ["models", "optimize", "xs", "--method", method, "--images", str(tmp_path)])
    assert done.exit_code == 1
    assert words in done.stderr
