"""The artefact's files: what is saved is loaded, every kind of damage is refused, and answers are kept condensed."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from jetsel.artefact.calibration import ANSWERS, Calibration, CalibrationFacts
from jetsel.artefact.coding import ARRAYS, MANIFEST, read, save
from jetsel.artefact.condensed import read_condensed
from jetsel.base import arrays
from jetsel.base.errors import CalibrationError
from jetsel.calibrate.fit.temperature import fit_temperatures
from jetsel.calibrate.record.recording import Recording
from jetsel.features import NAMES
from jetsel.policies.registry import KIND
from tests.unit.policies.animals import PARTS


def refused(folder: Path, reason: str) -> None:
    """Check that loading is refused for that reason, a regular expression."""
    with pytest.raises(CalibrationError, match=reason):
        read(folder)


def forge(folder: Path, put: dict[str, Any] | None = None, **changes: Any) -> None:
    """Put arrays in and change the manifest's body, and make the hash right again."""
    with np.load(folder / ARRAYS) as found:
        np.savez_compressed(folder / ARRAYS, **({**found} | (put or {})))
    body = json.dumps(json.loads((folder / MANIFEST).read_bytes())["body"] | changes)
    digest = hashlib.sha256(body.encode() + (folder / ARRAYS).read_bytes()).hexdigest()
    (folder / MANIFEST).write_text(
        f'{{"format": "jetsel-calibration", "version": 8, "sha256": "{digest}", "body": {body}}}'
    )


def arrays_of(calibration: Calibration) -> list[dict[str, Any]]:
    parts = calibration.parts
    return [dict(parts[name].arrays) for name in sorted(parts)]


def test_what_is_saved_is_loaded(calibration: Calibration, tmp_path: Path) -> None:
    assert PARTS.keys() == KIND.keys()
    calibration = msgspec.structs.replace(calibration, parts=PARTS)
    save(calibration, tmp_path / "c")
    found = read(tmp_path / "c")
    for name in CalibrationFacts.__struct_fields__:
        assert getattr(found, name) == getattr(calibration, name), name
    assert list(found.identities) == ["small", "middle", "large"]
    assert {name: part.facts for name, part in found.parts.items()} == {n: part.facts for n, part in PARTS.items()}
    for kept, was in zip(arrays_of(found), arrays_of(calibration), strict=True):
        assert kept.keys() == was.keys()
        for name, array in kept.items():
            assert (array.dtype, array.tolist()) == (was[name].dtype, was[name].tolist())
            assert not array.flags.writeable
    assert sorted(entry.name for entry in (tmp_path / "c").iterdir()) == [ARRAYS, MANIFEST]


@pytest.mark.parametrize("name", [ARRAYS, MANIFEST])
def test_every_flipped_byte_and_truncation_is_refused(saved: Path, name: str) -> None:
    whole = (saved / name).read_bytes()
    for position in range(0, len(whole) - 1, 7):
        for bit in (0x01, 0x20, 0x80):
            damaged = bytearray(whole)
            damaged[position] ^= bit
            (saved / name).write_bytes(damaged)
            refused(saved, re.escape(str(saved)))  # whatever is wrong, the message says where
    for length in [*range(0, len(whole) - 1, 97), len(whole) - 2]:
        (saved / name).write_bytes(whole[:length])
        refused(saved, re.escape(str(saved)))


@pytest.mark.parametrize("name", [ARRAYS, MANIFEST])
def test_a_missing_file_is_named(saved: Path, name: str) -> None:
    (saved / name).unlink()
    refused(saved, rf"{name}: cannot be read \(No such file or directory\); recalibrate")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"name": "resnet", "version": 5}', "not a calibration's manifest"),
        ('{"format": "other", "version": 1}', "of format 'other', not 'jetsel-calibration'"),
        ('{"format": "jetsel-calibration", "version": 9, "new": []}', "has version 9.* update"),
        ('{"format": "jetsel-calibration", "version": 6, "body": {}}', "version 6.* jetsel calibrate IMAGES"),
        ("[" * 100_000, "not a calibration's manifest"),
        (" " * (4 * 2**20 + 1), "exceeds the limit"),
    ],
)
def test_a_foreign_older_or_newer_manifest_is_refused(saved: Path, text: str, reason: str) -> None:
    (saved / MANIFEST).write_text(text)
    refused(saved, reason)


class Touch:
    """Unpickling it creates a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


def test_a_pickle_in_the_arrays_is_never_opened(saved: Path, tmp_path: Path) -> None:
    forge(saved, {"chain.points": np.array([Touch(tmp_path / "sprung")] * 8, dtype=object).reshape(4, 2)})
    refused(saved, "Object arrays cannot be loaded")
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        (np.array([["a"] * 2] * 4), "chain.points.npy is <U1"),
        (np.zeros((2, 2, 2), np.float32), r"chain.points.npy is float32 \(2, 2, 2\)"),
    ],
)
def test_an_array_of_another_kind_is_refused(saved: Path, points: Any, reason: str) -> None:
    forge(saved, {"chain.points": points})
    refused(saved, reason)


def test_more_bytes_than_are_allowed_are_not_unpacked(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "MAX_BYTES", 100)
    refused(saved, "limit of 100 bytes")


def test_a_policy_that_is_not_there_any_more_is_refused(saved: Path) -> None:
    parts = json.loads((saved / MANIFEST).read_bytes())["body"]["parts"]
    forge(saved, {"gone.table": np.arange(3)}, parts=parts | {"gone": {"anything": 1}})
    refused(saved, "it has gone, which this jetsel does not know: run jetsel calibrate IMAGES")


def test_facts_that_are_missing_are_named(saved: Path) -> None:
    forge(saved, facts={})
    refused(saved, "labels_sha256|family")


MODELS = ("small", "large")
PHOTOGRAPHS, CLASSES = 300, 400


@pytest.fixture(scope="module")
def whole() -> Recording:
    draw = np.random.default_rng(5)
    classes = draw.integers(0, CLASSES, PHOTOGRAPHS)
    logits = draw.normal(0, 1.5, (2, PHOTOGRAPHS, CLASSES)).astype(np.float32)
    logits[:, np.arange(PHOTOGRAPHS), classes] += np.array([[4.0], [6.0]], np.float32)
    features = draw.random((PHOTOGRAPHS, len(NAMES)), dtype=np.float32)
    return Recording(MODELS, logits, classes, features, {"small": 1.0, "large": 5.0})


def test_confidences_and_who_is_right_are_those_of_the_whole(whole: Recording, tmp_path: Path) -> None:
    temperatures = fit_temperatures(whole)
    (tmp_path / ANSWERS).write_bytes(whole.condense_answers(temperatures))
    assert (tmp_path / ANSWERS).stat().st_size < whole.logits.nbytes / 5
    found = Recording.of_answers(read_condensed(tmp_path, {"small": 2.0, "large": 3.0}), 64)
    assert (found.models, found.costs_ms, found.is_scaled) == (MODELS, {"small": 2.0, "large": 3.0}, True)
    assert fit_temperatures(found) == {"small": 1.0, "large": 1.0}
    assert found.features == pytest.approx(whole.features, rel=1e-3)
    assert (found.right != whole.right).mean() < 0.01
    sure = found.confidences({"small": 1.0, "large": 1.0})
    assert sure == pytest.approx(whole.confidences(temperatures), abs=0.02)
    (alone,) = read_condensed(tmp_path, {"large": 3.0}).logits
    assert np.array_equal(alone, found.logits[1])


def test_what_is_missing_or_damaged_is_said(whole: Recording, tmp_path: Path) -> None:
    with pytest.raises(CalibrationError, match=r"answers.npz: cannot be read: .*; install jetsel again"):
        read_condensed(tmp_path, {"small": 1.0})
    (tmp_path / ANSWERS).write_bytes(whole.condense_answers(fit_temperatures(whole))[:-9])
    with pytest.raises(CalibrationError, match="install jetsel again"):
        read_condensed(tmp_path, {"small": 1.0})
