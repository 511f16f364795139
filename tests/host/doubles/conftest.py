"""Interpreters with the doubles of TensorRT and pycuda, and a way to ask them something."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.contract.tiny import HEIGHT_PX, PIXELS, WIDTH_PX, matrix_model
from tests.doubles.interpreter import GENERATIONS, make_interpreter

CALLER = Path(__file__).parents[2] / "doubles"
PRELUDE = f"import sys; sys.path.insert(0, {str(CALLER)!r})\nfrom caller import *\nMODEL = sys.argv[1]\n"
SHAPE = (3, 3, HEIGHT_PX, WIDTH_PX)
BATCH = f"BATCH = np.linspace(-1, 1, {3 * PIXELS}, dtype=np.float32).reshape{SHAPE}\n"
CLASSES = 4
WEIGHTS = np.random.default_rng(0).normal(size=(PIXELS, CLASSES)).astype(np.float32)

Ask = Callable[..., Any]


@pytest.fixture(scope="session")
def pythons(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One interpreter for each generation of TensorRT."""
    folder = tmp_path_factory.mktemp("pythons")
    return {name: make_interpreter(folder / name, name) for name in GENERATIONS}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The file of a model whose logits are its flattened input times WEIGHTS, and whose embedding is that input."""
    path = tmp_path / "tiny.onnx"
    path.write_bytes(matrix_model(WEIGHTS))
    return path


@pytest.fixture
def begin(pythons: dict[str, Path], model: Path) -> Ask:
    """Run a script after the caller's definitions, on a board; return the finished process.

    The script finds the model's path in MODEL and three images in BATCH, from -1 to 1 in equal steps.
    """

    def run(generation: str, script: str, **board: Any) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "JETSEL_DOUBLE": json.dumps(board)}
        command = [str(pythons[generation]), "-I", "-c", PRELUDE + BATCH + script, str(model)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)

    return run


@pytest.fixture
def ask(begin: Ask) -> Ask:
    """Run a script that says one thing, and return that."""

    def said(generation: str, script: str, **board: Any) -> Any:
        ran = begin(generation, script, **board)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    return said


@pytest.fixture
def expected() -> tuple[Any, Any]:
    """The logits and the embedding of BATCH, worked out with numpy."""
    flat = np.linspace(-1, 1, 3 * PIXELS, dtype=np.float32).reshape(3, PIXELS)
    return flat @ WEIGHTS, flat
