"""A family's multiplexer: apart from its models, bound to them, and its table of photographs that it learned from."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from jetsel.errors import ManifestError, UnknownModelError
from jetsel.store import arrays
from jetsel.zoo import Model, answering, scan, verify
from jetsel.zoo.held_out import held_out_file, read_held_out
from jetsel.zoo.placing import copy_to, take_out
from tests.unit.daemon.families import SEEN_BEFORE, put_family, put_multiplexer

MATRIX = np.zeros((48, 2), np.float32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return put_family(tmp_path / "cats", "cats", "s", "m")


def multiplexer(folder: Path) -> Model:
    found = scan([folder]).families["cats"].multiplexer
    assert found is not None
    return found


def test_it_is_none_of_the_models_and_is_found_by_name(folder: Path) -> None:
    put_multiplexer(folder, "cats", MATRIX)
    zoo = scan([folder])
    family = zoo.families["cats"]
    assert [model.manifest.name for model in family.models] == ["s", "m"]
    assert [model.manifest.name for model in family.networks] == ["s", "m", "mux"]
    _, found = zoo.find("mux", None)
    assert found == family.multiplexer
    assert found.weights(6).classes == 3, "one for each model and the last"
    with pytest.raises(UnknownModelError, match="mux is a multiplexer: name one of s, m"):
        answering(found)
    verify(found)


def test_a_second_one_is_left_out(folder: Path) -> None:
    put_multiplexer(folder, "cats", MATRIX)
    put_multiplexer(folder, "cats", MATRIX, name="second")
    assert multiplexer(folder).manifest.name == "mux"
    (broken,) = scan([folder]).broken
    assert broken.path.name == "second.json"
    assert f"has a multiplexer in {folder / 'mux.json'}: take one of them away" in broken.reason


def test_one_that_does_not_belong_to_the_models_is_left_out(folder: Path) -> None:
    put_multiplexer(folder, "cats", MATRIX, identities=["1" * 64, "2" * 64])
    (broken,) = scan([folder]).broken
    assert "s has changed and m has changed: jetsel train-multiplexer" in broken.reason
    put_multiplexer(folder, "cats", MATRIX)
    (folder / "m.json").unlink()
    zoo = scan([folder])
    assert zoo.families["cats"].multiplexer is None
    assert "m is not there" in zoo.broken[0].reason


def test_without_models_there_is_no_family(folder: Path) -> None:
    put_multiplexer(folder, "cats", MATRIX)
    for name in ("s", "m"):
        (folder / f"{name}.json").unlink()
    zoo = scan([folder])
    assert zoo.families == {}
    assert "s is not there and m is not there" in zoo.broken[0].reason


def test_its_table_comes_and_goes_with_it(folder: Path, tmp_path: Path) -> None:
    put_multiplexer(folder, "cats", MATRIX)
    copy = copy_to(multiplexer(folder), tmp_path / "other")
    assert read_held_out(copy)[SEEN_BEFORE].tolist() == [1, 0, 0]
    take_out(multiplexer(folder))
    assert {path.name for path in folder.iterdir()} == {"s.json", "m.json", "s.onnx", "m.onnx", "labels.tsv"}


def test_a_table_that_is_not_the_manifest_s_is_refused(folder: Path) -> None:
    put_multiplexer(folder, "cats", MATRIX)
    (folder / "mux.npz").write_bytes(held_out_file({SEEN_BEFORE: np.ones(3, np.float32)}))
    for look in (verify, read_held_out):
        with pytest.raises(ManifestError, match=r"mux.npz: .*sha256 is not that of its manifest: jetsel train-multi"):
            look(multiplexer(folder))


def test_a_table_is_read_within_bounds_and_of_the_right_shape(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_multiplexer(folder, "cats", MATRIX)
    manifest = json.loads((folder / "mux.json").read_text())
    for content, reason in (
        (held_out_file({SEEN_BEFORE: np.ones(4, np.float32)}), r"logits are float32 \(1, 4\)"),
        (arrays.pack({"photographs": np.zeros((1, 32)), "logits": np.zeros((1, 3))}), r"photographs are float64"),
        (arrays.pack({"logits": np.zeros((1, 3))}), "photographs"),
        (b"no archive", "cannot be read"),
    ):
        (folder / "mux.npz").write_bytes(content)
        manifest["multiplexes"]["held_out_sha256"] = hashlib.sha256(content).hexdigest()
        (folder / "mux.json").write_text(json.dumps(manifest))
        with pytest.raises(ManifestError, match=reason):
            read_held_out(multiplexer(folder))
    put_multiplexer(folder, "cats", MATRIX)
    monkeypatch.setattr(arrays, "MAX_BYTES", 10)
    with pytest.raises(ManifestError, match="more than 10 bytes"):
        read_held_out(multiplexer(folder))
