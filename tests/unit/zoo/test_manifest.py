"""A manifest is read whole or refused with its file, its key and what is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from jetsel.base.errors import ManifestError
from jetsel.zoo.manifest import Manifest, read_manifest
from tests.unit.zoo.making import described


def read(tmp_path: Path, **changes: Any) -> Manifest:
    path = tmp_path / "small.json"
    path.write_text(json.dumps(described(**changes)), encoding="utf-8")
    return read_manifest(path)


INPUT = described()["input"]
WRONG = {
    "name": ("Small", "small/er", "", "small\n", "a" * 65),
    "file": ("../small.onnx", "/etc/passwd", "..", "weights/small.onnx", 7),
    "sha256": ("ABC", "0" * 63),
    "embedding_width": (0, "wide"),
    "latency_ms": (0, -1.5, "quick"),
    "input": ({"width_px": 64}, INPUT | {"std": [0.0, 1.0, 1.0]}, INPUT | {"resize": "squeeze"}, INPUT | {"width": 64}),
}


@pytest.mark.parametrize("key", WRONG)
def test_a_wrong_value_is_refused_by_name(tmp_path: Path, key: str) -> None:
    for value in WRONG[key]:
        with pytest.raises(ManifestError) as error:
            read(tmp_path, **{key: value})
        message = str(error.value)
        assert message.startswith(f"{tmp_path / 'small.json'}: ")
        assert key in message
        assert "\n" not in message


def test_a_manifest_has_a_cost(tmp_path: Path) -> None:
    assert read(tmp_path, multiply_accumulates=..., latency_ms=4.5).cost_ms == 4.5
    with pytest.raises(ManifestError, match="latency_ms"):
        read(tmp_path, multiply_accumulates=...)


def test_keys_are_those_of_a_manifest_and_all_of_them(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="unknown field `flops`"):
        read(tmp_path, flops=12)
    with pytest.raises(ManifestError, match="missing required field `labels`"):
        read(tmp_path, labels=...)


def test_its_identity_is_what_it_answers_to_a_photograph(tmp_path: Path) -> None:
    made = read(tmp_path).identity
    told = {"tensors": {"recipe": "a net 1", "sha256": "7" * 64}}
    assert read(tmp_path, latency_ms=9.0, file="other.onnx", provenance={"source": "elsewhere"}).identity == made
    assert read(tmp_path, sha256="7" * 64).identity != made
    assert read(tmp_path, input=INPUT | {"width_px": 65}).identity != made
    of_tensors = read(tmp_path, **told).identity
    assert read(tmp_path, **told, sha256="8" * 64).identity == of_tensors  # written by another version of onnx
    assert read(tmp_path, tensors=told["tensors"] | {"recipe": "a net 2"}).identity != of_tensors
