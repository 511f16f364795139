"""A folder of models may hold anything: nothing hangs, grows without end, leaves the folder or raises another error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jetsel.base.errors import ManifestError
from jetsel.image.model_input import MAX_SIDE_PX
from jetsel.zoo import scan, verify
from jetsel.zoo.labels import MAX_BYTES as MAX_LABELS_BYTES
from jetsel.zoo.manifest import MAX_BYTES as MAX_MANIFEST_BYTES
from jetsel.zoo.store import MAX_WEIGHTS_BYTES
from tests.unit.zoo.making import described, put_model


def reason(folder: Path) -> str:
    (broken,) = scan([folder]).broken
    return broken.reason


def sparse(path: Path, size_bytes: int) -> None:
    with path.open("wb") as file:
        file.truncate(size_bytes)


def test_files_larger_than_any_of_their_kind_are_not_read(tmp_path: Path) -> None:
    put_model(tmp_path, name="good")
    (model,) = scan([tmp_path]).families["pets"].models
    sparse(tmp_path / "small.onnx", MAX_WEIGHTS_BYTES + 1)
    with pytest.raises(ManifestError, match=f"exceeds the limit of {MAX_WEIGHTS_BYTES} bytes"):
        verify(model)
    sparse(tmp_path / "labels.tsv", 1 << 40)
    assert f"exceeds the limit of {MAX_LABELS_BYTES} bytes" in reason(tmp_path)
    sparse(tmp_path / "good.json", 1 << 40)
    assert f"exceeds the limit of {MAX_MANIFEST_BYTES} bytes" in reason(tmp_path)


def test_an_input_of_a_billion_pixels_is_refused(tmp_path: Path) -> None:
    spec = described()["input"]
    for change in ({"width_px": 10**9}, {"height_px": MAX_SIDE_PX + 1}, {"resize_px": 10**9}):
        (tmp_path / "small.json").write_text(json.dumps(described(input={**spec, **change})))
        assert f"<= {MAX_SIDE_PX}" in reason(tmp_path)
