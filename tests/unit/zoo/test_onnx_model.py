"""ONNX files as the onnx package reads them: whole, or refused before ONNX Runtime sees them."""

import gzip
import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from jetsel.base.errors import ManifestError
from jetsel.zoo import STARTER, scan
from jetsel.zoo.onnx_model import count_weights, model_in, read_file, read_model
from tests.unit.zoo.making import EXTERNAL, LOCATION, TENSOR, WHOLE, field, onnx_file, varint
from tests.unit.zoo.networks import FLOAT, PIXELS, WEIGHTS, network

CONSTANT = field(5, field(5, EXTERNAL))  # the value of a Constant node
OUTSIDE = {
    "an initializer": field(5, EXTERNAL),
    "a second one": field(5, TENSOR) + field(5, TENSOR + LOCATION),
    "a place without a file": field(5, TENSOR + field(14, 1)),
    "a constant": field(1, CONSTANT),
    "a branch of an If": field(1, field(5, field(6, field(5, EXTERNAL)))),
    "a list of branches": field(1, field(5, field(11, field(5, EXTERNAL)))),
    "a sparse initializer": field(15, field(1, EXTERNAL)),
}


def test_weights_elsewhere_are_refused_wherever_a_tensor_may_stand() -> None:
    model_in(WHOLE, "model.onnx")
    files = {name: onnx_file(graph) for name, graph in OUTSIDE.items()}
    files["a function"] = WHOLE + field(25, field(7, CONSTANT))
    files["a second graph"] = WHOLE + field(7, field(5, EXTERNAL))  # protobuf merges the two
    for name, content in files.items():
        with pytest.raises(ManifestError, match="another file"):
            model_in(content, name)


@pytest.mark.parametrize("high", [0, 1 << 32])
def test_what_onnx_runtime_would_open_beside_a_model_is_refused_before_it_sees_it(tmp_path: Path, high: int) -> None:
    """ONNX Runtime keeps the lower 32 bits of a key and of a place: another reader may see an unknown field."""
    location = field(1, b"location") + field(2, b"other.data")
    named = field(1, PIXELS) + field(1, 3) + field(2, FLOAT) + field(8, b"weights")
    key = varint((13 << 3 | 2) + high) + varint(len(location)) + location + varint((14 << 3) + high) + b"\1"
    model = onnx.ModelProto.FromString(network())
    model.graph.ClearField("initializer")
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString() + field(7, field(5, named + key)))
    (tmp_path / "other.data").write_bytes(WEIGHTS.tobytes())
    if not high:
        onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])  # so it does follow them
    with pytest.raises(ManifestError, match=r"another file|not an ONNX file"):
        model_in(path.read_bytes(), "model.onnx")


def test_what_no_reader_follows_or_finds_is_refused(tmp_path: Path) -> None:
    nested = field(5, EXTERNAL)
    for _ in range(2000):
        nested = field(1, field(5, field(6, nested)))
    with pytest.raises(ManifestError, match="not an ONNX file"):
        model_in(onnx_file(nested), "deeper than any reader follows")
    with pytest.raises(ManifestError, match="cannot be read"):
        read_model(tmp_path / "nothing.onnx")


def _zip(name: str) -> bytes:
    """A zip whose first file is NAME: archive/data.pkl as torch.save writes it, metadata.json as Keras does."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, b"\x80\x02}.")
    return file.getvalue()


OTHER_FILES = {
    "TensorFlow Lite.* --tflite model.onnx ": b"\x1c\0\0\0TFL3" + bytes(64),
    "checkpoint of PyTorch.*torch.onnx.export": _zip("archive/data.pkl"),
    "checkpoint of PyTorch": pickle.dumps({"weight": [0.5]}, protocol=2),
    "Keras.*keras.saving": b"\x89HDF\r\n\x1a\n" + bytes(64),
    "a Keras model": _zip("metadata.json"),
    # Core ML's Model: specificationVersion 1; description 2, whose first field is an input's description
    "Core ML": field(1, 4) + field(2, field(1, field(1, b"image"))),
    # TensorFlow's SavedModel: saved_model_schema_version 1; meta_graphs 2; its GraphDef: node 1
    "or TensorFlow: .*--saved-model": field(1, 1) + field(2, field(1, field(1, b"x" * 300))),
    "Core ML or TensorFlow": field(1, field(1, b"input") + field(2, b"Placeholder")),
    "safetensors": (64).to_bytes(8, "little") + b'{"weight": {}}',
    "git lfs pull": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
    "a web page": b"\n<!DOCTYPE html><html></html>",
    "an archive: unpack it": gzip.compress(WHOLE),
    "damaged or incomplete": WHOLE[: len(WHOLE) // 2],
    "incomplete one: copy": b"",
    "unknown kind": b"weights, some other day",
    "ONNX Runtime's own format": b"\0\0\0\0ORTM" + WHOLE,
}


def test_what_is_no_onnx_file_is_named_with_what_to_do() -> None:
    for said, content in OTHER_FILES.items():
        with pytest.raises(ManifestError, match=f"not an ONNX file but .*{said}"):
            model_in(content, "model.onnx")


def _beside(folder: Path, place: str = "w.data") -> Path:
    """A model in the folder, its weights in a file there."""
    path = folder / "model.onnx"
    onnx.save(onnx.ModelProto.FromString(network()), path, save_as_external_data=True, location=place, size_threshold=0)
    return path


def test_weights_in_a_file_beside_it_are_taken_in(tmp_path: Path) -> None:
    path = _beside(tmp_path)
    _, _, model, taken_in = read_file(path)
    assert taken_in == ("w.data",)
    assert count_weights(model) == WEIGHTS.size
    (tmp_path / "w.data").unlink()
    taken = onnx.numpy_helper.to_array(model.graph.initializer[0])
    assert np.array_equal(taken, WEIGHTS)
    model_in(model.SerializeToString(), "the same, as one file")


def test_weights_that_are_missing_or_elsewhere_are_refused(tmp_path: Path) -> None:
    path = _beside(tmp_path)
    data = tmp_path / "w.data"
    content = data.read_bytes()
    data.write_bytes(content[:-1])
    with pytest.raises(ManifestError, match=r"its weights end before w\.data does: copy it again"):
        read_model(path)
    data.unlink()
    with pytest.raises(ManifestError, match=r"in w\.data beside it: No such file or directory: copy that file there"):
        read_model(path)
    (tmp_path / "elsewhere").write_bytes(content)
    data.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ManifestError, match=r"in another file, which is read only .*: export it as one file"):
        read_model(path)
    data.unlink()
    (tmp_path / "elsewhere").rename(data)
    assert count_weights(read_model(path)) == WEIGHTS.size, "the repair of all three"


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("../w.data", "in another file, which is read only"),
        ("/etc/hostname", "in another file, which is read only"),
        ("deeper/w.data", "in another file, which is read only"),
        ("..", "it is not a regular file"),
        ("", "it is not a regular file"),
    ],
)
def test_no_file_is_read_that_is_not_beside_the_model(tmp_path: Path, place: str, says: str) -> None:
    folder = tmp_path / "models"
    (folder / "deeper").mkdir(parents=True)
    for name in ("w.data", "models/deeper/w.data"):
        (tmp_path / name).write_bytes(WEIGHTS.tobytes())
    path = _beside(folder)
    model = onnx.load(path, load_external_data=False)
    model.graph.initializer[0].external_data[0].value = place
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ManifestError, match=says):
        read_model(path)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [("length", "1e3", "no number"), ("offset", "-8", "end before"), ("length", "-8", "end before")],
)
def test_a_place_that_is_no_part_of_the_file_is_refused(tmp_path: Path, key: str, value: str, says: str) -> None:
    path = _beside(tmp_path)
    model = onnx.load(path, load_external_data=False)
    next(entry for entry in model.graph.initializer[0].external_data if entry.key == key).value = value
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ManifestError, match=says):
        read_model(path)


def test_weights_that_many_tensors_share_count_for_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _beside(tmp_path)
    monkeypatch.setattr("jetsel.zoo.onnx_model.MAX_WEIGHTS_BYTES", path.stat().st_size + WEIGHTS.nbytes - 1)
    with pytest.raises(ManifestError, match="exceed the 2 GB of an ONNX file"):
        read_model(path)


def test_parameters_are_the_numbers_in_the_weights() -> None:
    model = model_in(network(("Mul", "scores hundred", "end")), "model.onnx")
    assert count_weights(model) == WEIGHTS.size + 1
    weights = model.graph.initializer.pop(0)
    model.graph.node.insert(0, onnx.helper.make_node("Constant", [], ["weights"], value=weights))
    assert count_weights(model) == WEIGHTS.size + 1, "as Paddle exports them"
    for model in scan([STARTER]).families["starter"].models:
        assert count_weights(read_model(model.path)) == model.manifest.parameters
