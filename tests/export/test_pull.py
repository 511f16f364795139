"""Published weights are fetched whole, exported so that ONNX Runtime answers as torch, and see torchvision's pixels."""

import hashlib
import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnxruntime
import pytest
import torch
import torchvision
from PIL import Image
from typer.testing import CliRunner

from jetsel.cli.app import app
from jetsel.image import InputSpec, Photograph, model_input
from jetsel.zoo import scan
from jetsel.zoo.export import export
from jetsel.zoo.onnx_model import read_model
from jetsel.zoo.published import preset_values
from tests.unit.zoo.test_store import models

WIDTHS = {"mobilenet_v2": 1280, "mobilenet_v3_small": 1024, "resnet18": 512, "resnet50": 2048, "efficientnet_b0": 1280}


def untrained(name: str) -> torch.nn.Module:
    """A network of random weights, its normalisations not at their defaults: folding those would prove nothing."""
    torch.manual_seed(0)
    net = torchvision.models.get_model(name, weights=None)
    with torch.no_grad():
        for key, tensor in net.state_dict().items():
            if "running" in key or (tensor.ndim == 1 and "weight" in key):
                tensor.uniform_(0.5, 1.5)
    return net.eval()


@pytest.mark.parametrize("name", sorted(WIDTHS))
def test_onnx_runtime_answers_as_torch_does(name: str, tmp_path: Path) -> None:
    net, path = untrained(name), tmp_path / "net.onnx"
    export(net, path, 224, 224)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for size in (1, 3):  # the example that was traced had 2
        batch = np.random.default_rng(size).standard_normal((size, 3, 224, 224)).astype(np.float32)
        logits, embedding = session.run(["logits", "embedding"], {"image": batch})
        with torch.no_grad():
            expected = net(torch.from_numpy(batch)).numpy()
        scale = np.abs(expected).max()
        assert np.abs(logits - expected).max() <= 1e-4 * scale
        assert embedding.shape == (size, WIDTHS[name])
        last = [module for module in net.modules() if isinstance(module, torch.nn.Linear)][-1]
        with torch.no_grad():
            assert np.abs(last(torch.from_numpy(embedding)).numpy() - logits).max() <= 1e-4 * scale


def test_a_network_that_ends_in_no_linear_layer_has_no_embedding(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    example = export(untrained("squeezenet1_1"), path, 224, 224)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert [output.name for output in session.get_outputs()] == ["logits"]
    found = session.run(None, {"image": example.batch})[0]
    assert np.abs(found - example.logits).max() <= 1e-4 * np.abs(example.logits).max()


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """The folder that weights are published in."""
    (tmp_path / "published").mkdir()
    return tmp_path / "published"


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    return tmp_path / "state" / "models"


def publish(folder: Path, name: str, content: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Save what a checkpoint holds, and have torchvision expect it, by its hash, as the model's default weights."""
    draft = folder / "draft"
    torch.save(content, draft)
    path = folder / f"{name}-{hashlib.sha256(draft.read_bytes()).hexdigest()[:8]}.pth"
    draft.rename(path)
    weights = torchvision.models.get_model_weights(name).DEFAULT
    monkeypatch.setattr(weights.value, "url", f"https://models.invalid/all/{path.name}")
    return path


def pull(*arguments: str, status: int = 0) -> str:
    """What the command prints: on the standard output where it succeeds, else its one line of error."""
    done = CliRunner().invoke(app, ["models", "pull", *arguments])
    assert done.exit_code == status, done.output
    if status != 0:
        assert len(done.stderr.splitlines()) == 1
    return done.stdout if status == 0 else done.stderr


def test_a_model_is_pulled_with_all_that_was_published_of_it(
    published: Path, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = untrained("mobilenet_v3_small")
    file = publish(published, "mobilenet_v3_small", net.state_dict(), monkeypatch)
    said = json.loads(pull("torchvision:mobilenet_v3_small", "--from", f"{published.as_uri()}/", "--json"))
    model = models(own)["mobilenet_v3_small"]
    manifest, spec = model.manifest, model.manifest.input
    assert (manifest.family, said["classes"]) == ("imagenet1k", 1000)
    assert (spec.width_px, spec.height_px, spec.resize_px) == (224, 224, 256)
    assert (spec.resize, spec.interpolation, spec.crop, spec.channels) == (
        "shorter-side",
        "antialiased-bilinear",
        "center",
        "rgb",
    )
    assert (spec.mean, spec.std) == ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    described = torchvision.models.MobileNet_V3_Small_Weights.IMAGENET1K_V1.meta
    assert manifest.latency_ms is not None
    assert manifest.parameters == pytest.approx(described["num_params"], rel=0.01)
    assert "weights IMAGENET1K_V1" in manifest.provenance.source
    assert file.name in manifest.provenance.source
    assert "terms of that data" in (manifest.provenance.notice or "")
    (family,) = scan([own]).families.values()
    assert [name.partition(" (")[0] for name in family.labels.names] == described["categories"]
    assert len(set(family.labels.wnids)) == 1000  # although two are called crane
    graph = read_model(model.path)
    assert [(entry.domain, entry.version) for entry in graph.opset_import] == [("", 13)]
    assert graph.ir_version <= 8  # what ONNX Runtime 1.10 knows
    batch = np.random.default_rng(0).standard_normal((2, 3, 224, 224)).astype(np.float32)
    session = onnxruntime.InferenceSession(str(model.path), providers=["CPUExecutionProvider"])
    with torch.no_grad():
        expected = net(torch.from_numpy(batch)).numpy()
    np.testing.assert_allclose(
        session.run(["logits"], {"image": batch})[0], expected, atol=1e-4 * float(np.abs(expected).max()), rtol=0
    )


class Evil:
    """What runs a command when an unpickler that is not careful reads it."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.target,)


def test_a_checkpoint_never_runs_code(
    published: Path, own: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    state = untrained("mobilenet_v3_small").state_dict()
    publish(published, "mobilenet_v3_small", {**state, "more": Evil(tmp_path / "ran")}, monkeypatch)
    assert "holds no weights" in pull("torchvision:mobilenet_v3_small", "--from", published.as_uri(), status=1)
    assert not (tmp_path / "ran").exists()
    assert not own.exists()


def test_a_checkpoint_that_is_not_there_or_not_the_one_published_is_refused(
    published: Path, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = publish(published, "mobilenet_v3_small", {}, monkeypatch)
    said = pull("torchvision:mobilenet_v3_small", "--from", f"{published.as_uri()}/elsewhere", status=1)
    assert "--from URL" in said
    file.write_bytes(b"another")
    assert "hash" in pull("torchvision:mobilenet_v3_small", "--from", published.as_uri(), status=1)
    assert not own.exists()


def test_what_is_not_published_is_named(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no classifier resnet19 (did you mean resnet18?)" in pull("torchvision:resnet19", status=1)
    assert "no classifier fasterrcnn_resnet50_fpn" in pull("torchvision:fasterrcnn_resnet50_fpn", status=1)
    said = pull("torchvision:resnet50", "--weights", "BEST", status=1)
    assert "it has IMAGENET1K_V1, IMAGENET1K_V2, DEFAULT" in said
    weights = torchvision.models.get_model_weights("resnet18").DEFAULT
    monkeypatch.setattr(weights.value, "url", "https://models.invalid/resnet18.pth")
    assert "its name holds no hash" in pull("torchvision:resnet18", status=1)


PRESETS = {
    "resized to 256, bilinear": ("mobilenet_v3_small", "IMAGENET1K_V1", 224),
    "resized to 232": ("resnet50", "IMAGENET1K_V2", 224),
    "bicubic": ("efficientnet_b0", "IMAGENET1K_V1", 224),
    "larger, not much cropped": ("inception_v3", "IMAGENET1K_V1", 299),
}
SIZES = [(375, 500), (1200, 1603), (100, 121), (225, 2001)]


@pytest.mark.parametrize("preset", PRESETS)
def test_pixels_are_within_one_level(preset: str) -> None:
    for size in SIZES:
        check(preset, size)


def check(preset: str, size: tuple[int, int]) -> None:
    name, weights, side_px = PRESETS[preset]
    theirs = torchvision.models.get_model_weights(name)[weights].transforms()
    spec = InputSpec(width_px=side_px, height_px=side_px, **preset_values(theirs))
    draw = np.random.default_rng(size)
    bgr = cv2.GaussianBlur(draw.integers(0, 256, (*size, 3), dtype=np.uint8), (0, 0), 1.0)
    bgr = cv2.normalize(bgr, None, 0, 255, cv2.NORM_MINMAX)
    expected = theirs(Image.fromarray(np.ascontiguousarray(bgr[:, :, ::-1]))).numpy()
    found = model_input(Photograph(bgr, size[1], size[0]), spec)[0]
    assert found.shape == expected.shape
    levels = np.abs(found - expected) * 255 * np.array(spec.std)[:, np.newaxis, np.newaxis]
    assert levels.max() <= 1.1
    assert levels.mean() <= 0.02
