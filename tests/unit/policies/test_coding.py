"""The artefact's two files: what is saved is loaded, and every kind of damage is refused."""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from jetsel.errors import CalibrationError
from jetsel.policies.calibration import Calibration, Facts
from jetsel.policies.catalogue import CRITERIA, catalogue
from jetsel.policies.coding import ARRAYS, MANIFEST, read, save
from jetsel.policies.registry import KIND
from jetsel.zoo import STARTER
from tests.unit.policies.animals import PARTS


def refused(folder: Path, reason: str) -> None:
    """Check that loading is refused for that reason, a regular expression."""
    with pytest.raises(CalibrationError, match=reason):
        read(folder)


def forge(folder: Path, packed: bytes | None = None, **changes: Any) -> None:
    """Change the manifest's body, or the arrays, and make all hashes right again."""
    body = json.loads((folder / MANIFEST).read_bytes())["body"] | changes
    if packed is not None:
        (folder / ARRAYS).write_bytes(packed)
        body |= {"arrays_sha256": hashlib.sha256(packed).hexdigest(), "arrays_bytes": len(packed)}
    written = json.dumps(body)
    digest = hashlib.sha256(written.encode()).hexdigest()
    (folder / MANIFEST).write_text(
        f'{{"format": "jetsel-calibration", "version": 3, "sha256": "{digest}", "body": {written}}}'
    )


def repacked(folder: Path, changed: dict[str, bytes | None], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return the folder's .npz with members put in or, where None, left out."""
    with zipfile.ZipFile(folder / ARRAYS) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, data in (members | changed).items():
            if data is not None:
                archive.writestr(name, data)
    return file.getvalue()


def npy(array: Any, allow_pickle: bool = False) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=allow_pickle)
    return file.getvalue()


def test_what_is_saved_is_loaded(calibration: Calibration, saved: Path) -> None:
    found = read(saved)
    for name in Facts.__struct_fields__:
        assert getattr(found, name) == getattr(calibration, name), name
    assert list(found.model_sha256) == ["small", "middle", "large"]
    for name in ("minimum", "maximum", "points"):
        array = getattr(found, name)
        assert array.dtype == np.float32
        assert array.tolist() == getattr(calibration, name).tolist()
        assert not array.flags.writeable
    assert list(found.right) == ["top1", "top5"]
    for criterion, table in found.right.items():
        assert table.dtype == np.bool_
        assert table.tolist() == calibration.right[criterion].tolist()
        assert not table.flags.writeable
    assert sorted(entry.name for entry in saved.iterdir()) == [ARRAYS, MANIFEST]


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
    refused(saved, f"{name}: no such file; recalibrate")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"name": "resnet", "version": 3}', "not a calibration's manifest"),
        ('{"format": "other", "version": 1}', "of format 'other', not 'jetsel-calibration'"),
        (
            '{"format": "jetsel-calibration", "version": 4, "new": []}',
            "too new: of version 4.* update",
        ),
        (
            '{"format": "jetsel-calibration", "version": 1}',
            "of version 1, which this jetsel reads no more",
        ),
        ('{"format": "jetsel-calibration", "version": 3, "sha256": "", "body": 1}', "altered or damaged"),
        ("[" * 100_000, "not a calibration's manifest"),
        (" " * (4 * 2**20 + 1), "larger than"),
    ],
)
def test_a_foreign_or_newer_manifest_is_refused(saved: Path, text: str, reason: str) -> None:
    (saved / MANIFEST).write_text(text)
    refused(saved, reason)


class Touch:
    """Unpickling it creates a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


def test_a_pickle_in_the_arrays_is_never_opened(saved: Path, tmp_path: Path) -> None:
    trap = np.array([Touch(tmp_path / "sprung")] * 8, dtype=object).reshape(4, 2)
    forge(saved, repacked(saved, {"points.npy": npy(trap, allow_pickle=True)}))
    refused(saved, r"points says .*'\|O'.* where .*'<f4'.* was expected")
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (np.zeros((8, 1), np.float32), r"points says .*\(8, 1\)"),
        (np.zeros((4, 1), np.float64), "points says .*<f8.* where .*<f4"),
        (np.asfortranarray(np.zeros((4, 2), np.float32)), "points says .*'fortran_order': True"),
        (np.zeros((4000, 2), np.float32), "points claims 32128 bytes"),
        (np.full((4, 2), np.inf, np.float32), "not finite"),
    ],
)
def test_an_array_of_another_kind_is_refused(saved: Path, array: Any, reason: str) -> None:
    forge(saved, repacked(saved, {"points.npy": npy(array)}))
    refused(saved, reason)


@pytest.mark.parametrize("extra", ["../escaped.npy", "more.npy"])
def test_a_member_too_many_is_refused(saved: Path, tmp_path: Path, extra: str) -> None:
    forge(saved, repacked(saved, {extra: npy(np.zeros(1))}))
    refused(saved, "its arrays are")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["animals"]


@pytest.mark.parametrize("header", [b"(" * 2000, b"'" + b"\\" * 99])
def test_a_header_is_compared_and_never_evaluated(saved: Path, header: bytes) -> None:
    whole = npy(np.zeros((4, 2), np.float32))
    other = whole[:8] + len(header).to_bytes(2, "little") + header + whole[-32:]
    forge(saved, repacked(saved, {"points.npy": other}))
    refused(saved, "points says")


def test_another_compression_is_refused(saved: Path) -> None:
    forge(saved, repacked(saved, {}, zipfile.ZIP_LZMA))
    refused(saved, "compressed in a way that jetsel does not write")


def points(dtype: str, *shape: int) -> dict[str, Any]:
    """A manifest's claim of what the points are."""
    return {"points": {"dtype": dtype, "shape": shape}}


def test_the_parts_of_every_policy_are_stored(calibration: Calibration, tmp_path: Path) -> None:
    assert PARTS.keys() == KIND.keys()
    save(msgspec.structs.replace(calibration, parts=PARTS), tmp_path / "c")
    found = read(tmp_path / "c").parts
    assert found.keys() == PARTS.keys()
    for name, part in PARTS.items():
        assert found[name].facts == part.facts
        assert found[name].arrays.keys() == part.arrays.keys()
        for of, array in part.arrays.items():
            again = found[name].arrays[of]
            assert (again.dtype, again.tolist(), again.flags.writeable) == (array.dtype, array.tolist(), False)


def test_a_part_of_a_policy_that_is_not_there_any_more_is_passed_over(saved: Path) -> None:
    body = json.loads((saved / MANIFEST).read_bytes())["body"]
    odd = np.arange(3, dtype=np.float32)
    forge(
        saved,
        repacked(saved, {"gone.table.npy": npy(odd)}),
        arrays=body["arrays"] | {"gone.table": {"dtype": "<f4", "shape": [3]}},
        parts=body["parts"] | {"gone": {"anything": 1}},
    )
    assert read(saved).parts.keys() == body["parts"].keys()


def test_a_calibration_of_version_2_is_read_and_what_went_is_left_out() -> None:
    manifest = json.loads((STARTER / "calibration" / MANIFEST).read_bytes())
    assert manifest["version"] == 2
    facts = manifest["body"]["facts"]
    assert {"skip", "links", "averaged", "boosted"} <= facts.keys()
    assert "chain-right" in facts["figures"]["top1"]
    found = read(STARTER / "calibration")
    policies = catalogue(list(found.model_sha256), found, {})
    fitted = {"chain", "cascade", "cascade-averaged", "embedding", "boosted"}
    for criterion in CRITERIA:
        assert set(policies[criterion]) == fitted | {f"single:{model}" for model in found.model_sha256}
        assert list(found.parts["chain"].facts.links[criterion]) == facts["links"][criterion]
        assert found.parts["boosted"].facts.weighings[criterion].price == facts["boosted"][criterion]["price_per_ms"]
        rungs = found.parts["cascade"].facts.rungs[criterion]
        assert [msgspec.to_builtins(rung) for rung in rungs] == facts["cascades"][criterion]
        assert not {"chain-right", "cascade-skipping"} & found.figures[criterion].keys()


def test_version_2_without_links_has_all_models_cheapest_first(saved: Path) -> None:
    body = json.loads((saved / MANIFEST).read_bytes())["body"]
    parts = body.pop("parts")
    body["facts"]["cascades"] = parts["cascade"]["rungs"]
    written = json.dumps(body)
    digest = hashlib.sha256(written.encode()).hexdigest()
    (saved / MANIFEST).write_text(
        f'{{"format": "jetsel-calibration", "version": 2, "sha256": "{digest}", "body": {written}}}'
    )
    assert read(saved).parts["chain"].facts.links == dict.fromkeys(CRITERIA, ("small", "middle", "large"))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (points("<f4", 10**7, 2**20), "would take more than"),
        (points("|O", 4, 2), "cannot be understood"),
        ({"arrays": {}}, "its arrays are"),
        ({"criteria": ["top1"]}, "it holds right_top5, which its manifest has no use for"),
        ({"criteria": ["top1", "top5", "top9"]}, "right_top9 is missing"),
        ({"facts": {}}, "cannot be understood"),
    ],
)
def test_a_manifest_that_claims_too_much_is_refused(saved: Path, changes: dict[str, Any], reason: str) -> None:
    arrays = json.loads((saved / MANIFEST).read_bytes())["body"]["arrays"]
    forge(saved, **({"arrays": arrays | changes} if "points" in changes else changes))
    refused(saved, reason)
