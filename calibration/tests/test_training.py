"""The commands from images to a published family, on a miniature; and what is exported answers as torch does."""

import io
import json
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from onnx import numpy_helper

from calibration.starter import export, measure, teach, train
from calibration.starter.export import outputs_of, store_half, to_onnx
from calibration.starter.nets import SHAPES, Net
from calibration.starter.train import Recipe
from jetsel.zoo import scan, verify
from tests.export.conftest import _one_thread_of_the_processor  # noqa: F401  # for each test here, too

pytestmark = pytest.mark.export
WNIDS = ("n00000001", "n00000002", "n00000003", "n00000004")
PER_CLASS = 100  # 80 to train on, 20 held out
COLOURS = ((200, 40, 40), (40, 200, 40), (40, 40, 200), (180, 180, 40))  # BGR


def drawn(label: int, rng: np.random.Generator) -> bytes:
    """A 64 x 64 JPEG of a disc in the colour of its class, somewhere on a noisy ground."""
    bgr = rng.integers(0, 256, (64, 64, 3), dtype=np.uint8)
    centre = tuple(int(c) for c in rng.integers(20, 44, 2))
    cv2.circle(bgr, centre, int(rng.integers(10, 20)), COLOURS[label], thickness=-1)
    done, encoded = cv2.imencode(".jpg", bgr)
    assert done
    return encoded.tobytes()


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the training takes it: tiny100-train.tar and tiny100-classes.tsv, of four classes."""
    folder = tmp_path_factory.mktemp("data")
    names = "".join(f"{wnid}\tdisc {i}, round thing\n" for i, wnid in enumerate(WNIDS))
    (folder / "tiny100-classes.tsv").write_text(names, encoding="utf-8")
    rng = np.random.default_rng(5)
    with tarfile.open(folder / "tiny100-train.tar", "w") as tar:
        for number in reversed(range(PER_CLASS)):  # not in sorted order, as in the real one
            for label, wnid in enumerate(WNIDS):
                content = drawn(label, rng)
                member = tarfile.TarInfo(f"{wnid}/{wnid}_{number}.JPEG")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    return folder


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Run a command's main with these arguments."""

    def call(main: Callable[[], None], *arguments: object) -> None:
        monkeypatch.setattr(sys, "argv", ["command", *map(str, arguments)])
        main()

    return call


def test_from_photographs_to_a_measured_family(
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    run: Callable[..., None],
) -> None:
    monkeypatch.setitem(train.RECIPES, "s", Recipe(epochs=8, seed=2))
    monkeypatch.setitem(
        train.RECIPES,
        "xs",
        Recipe(epochs=4, seed=3, sides_px=((0.5, 48), (0.5, 64)), cutmix_share=0.5, teachers=("s",)),
    )
    monkeypatch.setattr(teach, "VIEWS", 3)  # fewer than the student's epochs, so that it sees one again
    work, out, trained = tmp_path / "work", tmp_path / "out", tmp_path / "trained"
    where = ("--data", data, "--work", work)
    run(train.main, "s", *where)
    published = ("--out", str(out), "--trained", str(trained), "--version", "2.1.0")
    with pytest.raises(SystemExit, match=r"run python -m calibration\.starter\.teach s first"):
        run(train.main, "xs", *where)
    with pytest.raises(SystemExit, match=r"run python -m calibration\.starter\.train s, then export it"):
        run(teach.main, "s", *where, "--published", out)
    export.main(["s", *map(str, where), *published])
    run(teach.main, "s", *where, "--published", out)
    run(train.main, "xs", *where)
    export.main(["xs", *map(str, where), *published])

    zoo = scan([out])
    assert zoo.broken == ()
    models = zoo.families["starter"].models
    assert [model.manifest.name for model in models] == ["xs", "s"]
    for model in models:
        verify(model)
    assert models[0].manifest.version == "2.1.0"
    assert "distilled from s: 4 epochs" in models[0].manifest.provenance.source

    capsys.readouterr()
    options = ["--held-out", "--data", data, "--models", out, "--trained", trained, "--rounds", 2]
    measure.main([str(option) for option in options])
    printed = capsys.readouterr().out
    cells = {line.split(" | ")[0].strip("| "): line.strip("| ").split(" | ") for line in printed.splitlines()[2:4]}
    assert list(cells) == ["xs", "s"]
    assert "80 images (held out of training)" in printed
    for name, row in cells.items():
        log = json.loads((trained / f"{name}.json").read_text())["log"]
        # The training read the photographs by another decoder, and float32 weights: two of 80 answers may differ.
        assert float(row[1]) == pytest.approx(100 * log[-1]["held_out_top1"], abs=2.5)


def untrained(name: str) -> Net:
    """A network of 100 classes, its normalisations not at their defaults: folding those would prove nothing."""
    torch.manual_seed(0)
    net = Net(SHAPES[name], 100)
    with torch.no_grad():
        for key, tensor in net.state_dict().items():
            if "running" in key or tensor.ndim == 1:
                tensor.uniform_(0.3, 0.7)
    return net.eval()


@pytest.fixture(params=sorted(SHAPES))
def net(request: pytest.FixtureRequest) -> Net:
    return untrained(request.param)


def test_onnx_runtime_answers_as_torch_does(net: Net, tmp_path: Path) -> None:
    model = to_onnx(net, tmp_path / "whole.onnx")
    (tmp_path / "half.onnx").write_bytes(store_half(model).SerializeToString())
    batch = np.random.default_rng(1).standard_normal((3, 3, 64, 64)).astype(np.float32)
    with torch.no_grad():
        expected = [outputs.numpy() for outputs in net(torch.from_numpy(batch))]
    for ours, theirs in zip(outputs_of(tmp_path / "whole.onnx", batch), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
    for ours, theirs in zip(outputs_of(tmp_path / "half.onnx", batch), expected, strict=True):
        # float16 keeps 11 bits: a weight is off by 2**-11 of itself at most, and the sums by less than 1 %.
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=0.01 * float(np.abs(theirs).max()))


def test_a_weight_that_float16_cannot_hold_is_refused(tmp_path: Path) -> None:
    model = to_onnx(untrained("xs"), tmp_path / "whole.onnx")
    tensor = next(tensor for tensor in model.graph.initializer if len(tensor.dims) > 1)
    values = numpy_helper.to_array(tensor).copy()
    values.flat[0] = 70_000  # float16 ends at 65,504
    tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    with pytest.raises(SystemExit, match="too large for float16"), np.errstate(over="ignore"):
        store_half(model)
