"""Which models are built as engines; tests/system/test_models_build.py builds them."""

from __future__ import annotations

from jetsel.cli.models.candidates import on_tensorrt
from jetsel.config import Config, Models
from jetsel.zoo import STARTER, scan


def test_models_of_other_backends_are_not_built() -> None:
    config = Config(models=Models(backends={"s": "tensorrt", "m": "onnxruntime"}))
    found = on_tensorrt("starter", scan([STARTER]).families["starter"].models, 100, config)
    assert [(one.family, one.name, one.classes) for one in found] == [("starter", "s", 100)]
