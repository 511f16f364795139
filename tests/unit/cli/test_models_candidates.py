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


def test_methods_that_need_torch_are_refused_before_the_images_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    command = ["models", "optimize", "xs", "--photos", str(tmp_path), "--methods"]  # an empty folder
    for methods, words in (("int8,svd", "pruning and factorising need torch"), ("fp16", "fp16 needs onnxconverter")):
        done = CliRunner().invoke(app, [*command, methods])
        assert done.exit_code == 1
        assert words in done.stderr


@pytest.mark.parametrize(
    ("name", "words"),
    [("xs-int5", "there is no candidate xs-int5 (did you mean xs-int8?)"), ("s", "models remove s --family starter")],
)
def test_a_candidate_that_cannot_be_added_is_refused_before_the_images_are_read(
    tmp_path: Path, name: str, words: str
) -> None:
    command = ["models", "optimize", "xs", "--photos", str(tmp_path), "--methods", "int8", "--add", name]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 1
    assert words in done.stderr
