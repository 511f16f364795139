"""Three images, a way to add what an exporter wrote, and the file of results that is written if all tests passed."""

import json
import os
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import cv2
import numpy as np
import pytest
from typer.testing import CliRunner

from jetsel.cli.app import app
from jetsel.engines.onnx import OnnxEngine
from jetsel.image import Limits, decode, model_input
from jetsel.zoo import scan

os.environ |= {"KERAS_BACKEND": "torch", "YOLO_OFFLINE": "true", "HF_HUB_OFFLINE": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
from tests.export import conftest as _operators_of_torchvision  # noqa: F401  # before torchvision is imported

RESULTS = Path(__file__).parent / "results.json"
PACKAGES = (
    "onnx onnxruntime torch torchvision ultralytics timm optimum-onnx transformers keras tensorflow tf2onnx skl2onnx"
)
LIMITS = Limits(max_bytes=10**6, max_pixels=10**6)
NAMES = ["cat", "dog", "red fox"]
_differences: dict[str, float] = {}

Own = Callable[[Path], np.ndarray]
"""What the framework itself answers for an image file: (3,), logits or the logarithms of shares."""


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three pictures in PNG, which all programs decode alike: broad, high, and square of 64 pixels."""
    folder = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(7)
    paths = []
    for width, height in ((120, 90), (80, 110), (64, 64)):
        coarse = rng.integers(0, 256, (6, 6, 3), dtype=np.uint8)
        paths.append(folder / f"{width}x{height}.png")
        cv2.imwrite(str(paths[-1]), cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC))
    return paths


@pytest.fixture
def check(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., None]:
    """Add a file or folder, and compare what it answers then with what the framework does."""

    def checked(exported: Path, own: Own, images: list[Path], *options: str) -> None:
        folder = tmp_path / "added"
        command = ["models", "add", str(exported), "--folder", str(folder), *options]
        done = CliRunner().invoke(app, command, env={"COLUMNS": "300"})
        assert done.exit_code == 0, done.output
        ((model,),) = (family.models for family in scan([folder]).families.values())
        engine = OnnxEngine("added", model.path, concurrency=1, threads=1)
        worst = 0.0
        for image in images:
            photograph = decode(image.read_bytes(), LIMITS, model.manifest.input.shorter_px)
            logits = engine.infer(model_input(photograph, model.manifest.input)).logits[0]
            expected = own(image)
            found, expected = logits - logits.mean(), expected - expected.mean()  # shares say no more
            worst = max(worst, float(np.abs(found - expected).max() / np.abs(expected).max()))
        assert worst < 1e-3, done.output
        _differences[request.node.name.removeprefix("test_")] = worst

    return checked


@pytest.fixture(scope="session", autouse=True)
def _results(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if request.session.testsfailed == 0:
        versions = {name: version(name) for name in PACKAGES.split()}
        result = {"versions": versions, "largest_difference_as_a_share_of_the_largest_logit": _differences}
        RESULTS.write_text(json.dumps(result, indent=2) + "\n")
