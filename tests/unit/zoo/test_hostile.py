"""A folder of models may hold anything: nothing hangs, grows without end, leaves the folder or raises another error."""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path

import onnxruntime
import pytest

from jetsel.errors import ManifestError
from jetsel.image.model_input import MAX_SIDE_PX
from jetsel.zoo import Labels, scan, verify
from jetsel.zoo.classifier import classifier_in
from jetsel.zoo.cost import tensors_to_shape
from jetsel.zoo.label_files import labels_file
from jetsel.zoo.labels import MAX_BYTES as MAX_LABELS_BYTES
from jetsel.zoo.manifest import MAX_BYTES as MAX_MANIFEST_BYTES
from jetsel.zoo.onnx_file import MAX_BYTES as MAX_ONNX_BYTES
from jetsel.zoo.onnx_file import MAX_FIELDS, fields, refers_outside
from jetsel.zoo.onnx_graph import graph_in
from jetsel.zoo.placing import workplace
from jetsel.zoo.store import check_whole
from tests.contract.tiny import PIXELS
from tests.unit.zoo.making import TENSOR, WHOLE, described, field, onnx_file, put_model, varint
from tests.unit.zoo.networks import FLOAT, WEIGHTS, network

DEEP = b"[" * 100_000


def reason(folder: Path) -> str:
    (broken,) = scan([folder]).broken
    return broken.reason


def sparse(path: Path, size_bytes: int) -> None:
    with path.open("wb") as file:
        file.truncate(size_bytes)


def test_files_larger_than_any_of_their_kind_are_not_read(tmp_path: Path) -> None:
    put_model(tmp_path, name="good")
    (model,) = scan([tmp_path]).families["pets"].models
    sparse(tmp_path / "small.onnx", MAX_ONNX_BYTES + 1)
    with pytest.raises(ManifestError, match=f"larger than the {MAX_ONNX_BYTES} bytes that an ONNX file may have"):
        verify(model)
    sparse(tmp_path / "labels.tsv", 1 << 40)
    assert f"larger than the {MAX_LABELS_BYTES} bytes that labels may have" in reason(tmp_path)
    with pytest.raises(ManifestError, match="bytes that the names of classes may have"):
        labels_file(tmp_path / "labels.tsv")
    sparse(tmp_path / "good.json", 1 << 40)
    assert f"larger than the {MAX_MANIFEST_BYTES} bytes that a manifest may have" in reason(tmp_path)


@pytest.mark.parametrize("name", ["small.json", "small.onnx", "labels.tsv"])
def test_a_pipe_in_place_of_a_file_does_not_hang(tmp_path: Path, name: str) -> None:
    put_model(tmp_path)
    models = scan([tmp_path]).families["pets"].models
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    assert scan([tmp_path]).broken != ()
    if name == "small.onnx":
        with pytest.raises(ManifestError, match="cannot be read"):
            verify(models[0])


def test_a_manifest_that_is_a_link_out_of_its_folder_is_refused(tmp_path: Path) -> None:
    put_model(tmp_path / "elsewhere")
    put_model(tmp_path / "models", name="good")
    (tmp_path / "models" / "small.json").symlink_to(tmp_path / "elsewhere" / "small.json")
    assert "small.json is a link out of its folder" in reason(tmp_path / "models")


@pytest.mark.parametrize("name", ["../small.onnx", "/etc/passwd", "..", ".", "a/b.onnx", "a\\b\0", ".hidden"])
@pytest.mark.parametrize("key", ["file", "labels"])
def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path: Path, key: str, name: str) -> None:
    (tmp_path / "small.json").write_text(json.dumps(described(**{key: name})))
    assert f"{key}: " in reason(tmp_path)


def test_a_manifest_nested_deeper_than_python_recurses_is_refused(tmp_path: Path) -> None:
    (tmp_path / "small.json").write_bytes(b'{"more": ' + DEEP[:60_000])
    assert reason(tmp_path)


def test_an_input_of_a_billion_pixels_is_refused(tmp_path: Path) -> None:
    spec = described()["input"]
    for change in ({"width_px": 10**9}, {"height_px": MAX_SIDE_PX + 1}, {"resize_px": 10**9}):
        (tmp_path / "small.json").write_text(json.dumps(described(input={**spec, **change})))
        assert f"at most {MAX_SIDE_PX}" in reason(tmp_path)
    model = tmp_path / "model.onnx"
    model.write_bytes(network(sides=(b"n", 3, 10**6, 10**6)))
    with pytest.raises(ManifestError, match=f"at most {MAX_SIDE_PX} on a side"):
        classifier_in(model, "model.onnx", None, None)


def test_a_hundred_thousand_labels_are_read_in_a_moment(tmp_path: Path) -> None:
    path = tmp_path / "labels.tsv"
    path.write_text("".join(f"n{number:08d}\tname {number}\n" for number in range(100_000)))
    began_s = time.thread_time()
    assert len(Labels.read(path).wnids) == 100_000
    assert time.thread_time() - began_s < 10  # quadratic time would be minutes


LOCATION = field(1, b"location") + field(2, b"other.data")
HIGH = 1 << 32  # what a key has above its 32 bits
DISGUISED = {
    "plain": field(13, LOCATION) + field(14, 1),
    "keys of 33 bits": varint((13 << 3 | 2) + HIGH)
    + varint(len(LOCATION))
    + LOCATION
    + varint((14 << 3) + HIGH)
    + b"\1",
    "a place of 33 bits": field(13, LOCATION) + field(14, HIGH + 1),
}


@pytest.mark.parametrize("references", DISGUISED.values(), ids=DISGUISED)
def test_whatever_onnx_runtime_would_open_beside_a_model_is_refused_before_it_sees_it(
    tmp_path: Path, references: bytes
) -> None:
    """ONNX Runtime keeps the lower 32 bits of a key: it sees a reference where another sees an unknown field."""
    whole, tensor = network(), field(1, PIXELS) + field(1, 3) + field(2, FLOAT) + field(8, b"weights")
    inside = field(5, tensor + field(9, WEIGHTS.tobytes()))
    graph = next(bytes(value) for number, value in fields(memoryview(whole)) if number == 7)
    assert graph.count(inside) == 1
    path = tmp_path / "model.onnx"
    path.write_bytes(onnx_file(graph.replace(inside, field(5, tensor + references))))
    (tmp_path / "other.data").write_bytes(WEIGHTS.tobytes())
    onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])  # so it does follow them
    with pytest.raises(ManifestError, match=r"lie in another file|a field of number"):
        check_whole(path)


def test_a_field_of_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="a field of number 0"):
        refers_outside(field(0, b"") + WHOLE)


def test_a_file_of_onnx_runtimes_own_format_is_refused() -> None:
    with pytest.raises(ValueError, match="own format"):
        refers_outside(field(8, b"\2\0") + b"ORTM" + WHOLE)


def test_a_file_of_countless_fields_is_given_up() -> None:
    began_s = time.thread_time()
    for content in (field(7, b"\x08\0" * (MAX_FIELDS + 9)), field(7, b"\x0a\0" * (MAX_FIELDS + 9))):
        with pytest.raises(ValueError, match=f"more than {MAX_FIELDS} fields"):
            refers_outside(content)
    assert time.thread_time() - began_s < 30


@pytest.mark.parametrize(
    ("dims", "said"),
    [
        (field(1, b"\x02" * 65), "more than 64 sides"),
        (field(1, 2) * 65, "more than 64 sides"),
        (field(1, b"\xff" * 1_000_000), "more than ten bytes"),
        (field(1, (1 << 64) - 1), "more numbers than any file holds"),
        (field(1, b"\xff\xff\xff\x7f" * 3), "more numbers than any file holds"),
        (field(1, b"\x80"), "ends in the middle"),
    ],
)
def test_a_tensor_of_impossible_sides_is_refused(dims: bytes, said: str) -> None:
    began_s = time.thread_time()
    with pytest.raises(ValueError, match=said):
        graph_in(onnx_file(field(5, dims + TENSOR)))
    assert time.thread_time() - began_s < 2


@pytest.mark.parametrize("kind", ["Conv", "MatMul", "QLinearConv", "Gemm"])
@pytest.mark.parametrize("node", [b"", field(1, b"images"), field(1, b"a") * 2, field(2, b"scores")])
def test_an_operation_without_its_factors_is_refused(kind: str, node: bytes) -> None:
    graph = graph_in(onnx_file(field(1, node + field(4, kind.encode())) + field(12, field(1, b"logits"))))
    with pytest.raises(ManifestError, match=f"operation {kind} lacks a factor or an output"):
        tensors_to_shape(graph)


def test_a_softmax_of_nothing_has_nothing_before_it(tmp_path: Path) -> None:
    nothing = field(1, field(2, b"logits") + field(4, b"Softmax"))
    path = tmp_path / "model.onnx"
    path.write_bytes(network(outputs=("logits",)) + field(7, nothing))
    assert classifier_in(path, "model.onnx", None, None).before_softmax is None


@pytest.mark.parametrize("content", [b'{"file": "small.o', b"\xff", DEEP[:60_000], b" " * (MAX_MANIFEST_BYTES + 1)])
@pytest.mark.parametrize("aside", [".jetsel-adding", ".jetsel-removing"])
def test_what_a_command_that_was_cut_off_left_is_cleared_whatever_it_holds(
    tmp_path: Path, aside: str, content: bytes
) -> None:
    put_model(tmp_path)
    (tmp_path / aside).mkdir()
    (tmp_path / aside / "manifest.json").write_bytes(content)
    with contextlib.suppress(KeyError), workplace(tmp_path):
        raise KeyError
    assert {path.name for path in tmp_path.iterdir()} == {"small.json", "small.onnx", "labels.tsv"}
