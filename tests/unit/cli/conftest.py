"""The folder that models are added to, a network, and the names of its classes."""

from pathlib import Path

import numpy as np
import pytest

from tests.contract.tiny import PIXELS, matrix_model


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that models are added to where the configuration names none."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    return tmp_path / "state" / "models"


@pytest.fixture
def onnx(tmp_path: Path) -> Path:
    path = tmp_path / "Tiny Net.onnx"
    path.write_bytes(matrix_model(np.ones((PIXELS, 3), np.float32)))
    return path


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "drinks.txt"
    path.write_text("tea\ncoffee\nmilk, cold milk\n")
    return path
