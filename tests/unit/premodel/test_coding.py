"""The artefact's two files: what is saved is loaded, and every kind of damage is refused."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from jetsel.errors import CalibrationError
from jetsel.premodel import Calibration, load, save
from jetsel.premodel.artefact import Facts
from jetsel.premodel.coding import ARRAYS, MANIFEST


def refused(folder: Path, reason: str) -> None:
    """Check that loading is refused for that reason, a regular expression."""
    with pytest.raises(CalibrationError, match=reason):
        load(folder)


def forge(folder: Path, arrays: bytes | None = None, **changes: Any) -> None:
    """Change the manifest's body, or the arrays, and make all hashes right again."""
    body = json.loads((folder / MANIFEST).read_bytes())["body"] | changes
    if arrays is not None:
        (folder / ARRAYS).write_bytes(arrays)
        body |= {"arrays_sha256": hashlib.sha256(arrays).hexdigest(), "arrays_bytes": len(arrays)}
    written = json.dumps(body)
    digest = hashlib.sha256(written.encode()).hexdigest()
    (folder / MANIFEST).write_text(
        f'{{"format": "jetsel-calibration", "version": 1, "sha256": "{digest}", "body": {written}}}'
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
    found = load(saved)
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
    assert sorted(entry.name for entry in saved.parent.iterdir()) == ["animals"]
    assert sorted(entry.name for entry in saved.iterdir()) == [ARRAYS, MANIFEST]


def test_figures_may_be_numpys_numbers(calibration: Calibration, tmp_path: Path) -> None:
    figures = {"top1": np.float32(0.5), "runs": np.array([1, 2]), "energy_mj": None}
    save(msgspec.structs.replace(calibration, figures=figures), tmp_path / "c")
    assert load(tmp_path / "c").figures == {"top1": 0.5, "runs": [1, 2], "energy_mj": None}


def test_saving_the_same_twice_gives_the_same_bytes(calibration: Calibration, saved: Path, tmp_path: Path) -> None:
    save(calibration, tmp_path / "again")
    for name in (ARRAYS, MANIFEST):
        assert (tmp_path / "again" / name).read_bytes() == (saved / name).read_bytes()


@pytest.mark.parametrize(
    "change", [{"k": 9}, {"figures": {"a": object()}}, {"temperatures": dict.fromkeys("sml", 1.0)}]
)
def test_what_would_be_refused_is_not_installed(calibration: Calibration, saved: Path, change: dict[str, Any]) -> None:
    with pytest.raises(CalibrationError):
        save(msgspec.structs.replace(calibration, **change), saved)
    assert load(saved).k == 3


def test_a_value_that_reading_refuses_is_not_installed(calibration: Calibration, saved: Path) -> None:
    never = msgspec.structs.replace(calibration, costs_ms={"small": float("nan"), "middle": 1.0, "large": 2.0})
    with pytest.raises(CalibrationError, match="costs_ms"):
        save(never, saved)
    assert load(saved).costs_ms["small"] == 0.5
    assert sorted(entry.name for entry in saved.parent.iterdir()) == ["animals"]


@pytest.mark.parametrize("name", [ARRAYS, MANIFEST])
def test_every_flipped_byte_is_refused(saved: Path, name: str) -> None:
    whole = (saved / name).read_bytes()
    for position in range(0, len(whole) - 1, 7):
        for bit in (0x01, 0x20, 0x80):
            damaged = bytearray(whole)
            damaged[position] ^= bit
            (saved / name).write_bytes(damaged)
            refused(saved, re.escape(str(saved)))  # whatever is wrong, the message says where


@pytest.mark.parametrize("name", [ARRAYS, MANIFEST])
def test_every_truncation_is_refused(saved: Path, name: str) -> None:
    whole = (saved / name).read_bytes()
    for length in [*range(0, len(whole) - 1, 97), len(whole) - 2]:
        (saved / name).write_bytes(whole[:length])
        refused(saved, re.escape(str(saved)))  # whatever is wrong, the message says where
    (saved / name).write_bytes(whole + b"more")
    refused(saved, "expected" if name == ARRAYS else "damaged")


@pytest.mark.parametrize("name", [ARRAYS, MANIFEST])
def test_a_missing_file_is_named(saved: Path, name: str) -> None:
    (saved / name).unlink()
    refused(saved, f"{name}: no such file; recalibrate")


def test_nothing_there_is_named(tmp_path: Path) -> None:
    refused(tmp_path / "nowhere", "no such file")


def test_a_pipe_in_place_of_a_file_does_not_hang(saved: Path) -> None:
    (saved / ARRAYS).unlink()
    os.mkfifo(saved / ARRAYS)
    refused(saved, "no such file")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"name": "resnet", "version": 3}', "not a calibration's manifest"),
        ('{"format": "other", "version": 1}', "of format 'other', not 'jetsel-calibration'"),
        (
            '{"format": "jetsel-calibration", "version": 2, "new": []}',
            "too new: of version 2.* update",
        ),
        ('{"format": "jetsel-calibration", "version": 1}', "cannot be understood"),
        ('{"format": "jetsel-calibration", "version": 0, "sha256": "", "body": 1}', "altered or damaged"),
        ("[1, 2]", "not a calibration's manifest"),
        ("no JSON", "not a calibration's manifest"),
        ("", "not a calibration's manifest"),
        ("[" * 100_000, "not a calibration's manifest"),
        (" " * (4 * 2**20 + 1), "larger than"),
    ],
)
def test_a_foreign_or_newer_manifest_is_refused(saved: Path, text: str, reason: str) -> None:
    (saved / MANIFEST).write_text(text)
    refused(saved, reason)


def test_bytes_that_are_no_text_are_refused(saved: Path) -> None:
    (saved / MANIFEST).write_bytes(b'{"format": "\xff\xfe", "version": 1}')
    refused(saved, "not a calibration's manifest")


def test_an_edited_manifest_is_refused(saved: Path) -> None:
    text = (saved / MANIFEST).read_text()
    assert '"threshold": 0.75' in text
    (saved / MANIFEST).write_text(text.replace('"threshold": 0.75', '"threshold": 0.05'))
    refused(saved, "altered or damaged")


def test_another_calibrations_arrays_are_refused(calibration: Calibration, saved: Path, tmp_path: Path) -> None:
    other = msgspec.structs.replace(calibration, points=calibration.points[::-1])
    save(other, tmp_path / "other")
    shutil.copy(tmp_path / "other" / ARRAYS, saved / ARRAYS)
    refused(saved, "not the arrays|larger than")


def test_a_forged_manifest_is_read_when_it_is_whole(saved: Path) -> None:
    """The forgeries below are refused for their own reason, not because the forging went wrong."""
    forge(saved, repacked(saved, {}))
    assert load(saved).family == "animals"


class Touch:
    """Unpickling it creates a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


def test_a_pickle_in_the_arrays_is_never_opened(saved: Path, tmp_path: Path) -> None:
    trap = np.array([Touch(tmp_path / "sprung")] * 8, dtype=object).reshape(4, 2)
    forge(saved, repacked(saved, {"points.npy": npy(trap, allow_pickle=True)}))
    refused(saved, r"points is object of \(4, 2\) where <f4 of \(4, 2\) was expected")
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (np.zeros((8, 1), np.float32), r"points is float32 of \(8, 1\)"),
        (np.zeros((4, 1), np.float64), r"points is float64 of \(4, 1\)"),
        (np.zeros((4, 2), ">f4"), "points is >f4"),
        (np.asfortranarray(np.zeros((4, 2), np.float32)), r"points is float32 of \(4, 2\)"),
        (np.zeros((4000, 2), np.float32), "points claims 32128 bytes"),
        (np.zeros((1, 2), np.float32), r"points is float32 of \(1, 2\)"),
        (np.full((4, 2), np.inf, np.float32), "not finite"),
    ],
)
def test_an_array_of_another_kind_is_refused(saved: Path, array: Any, reason: str) -> None:
    forge(saved, repacked(saved, {"points.npy": npy(array)}))
    refused(saved, reason)


@pytest.mark.parametrize("data", [b"", b"\x93NUMPY", b"\x93NUMPY\x09\x09" + b" " * 200, b"x" * 100])
def test_a_member_that_is_no_array_is_refused(saved: Path, data: bytes) -> None:
    forge(saved, repacked(saved, {"points.npy": data}))
    refused(saved, "points|arrays cannot be read")


def test_a_header_that_claims_more_than_it_holds_is_refused(saved: Path) -> None:
    claim = npy(np.zeros((4, 2), np.float32)).replace(b"(4, 2)", b"(9**9)")
    forge(saved, repacked(saved, {"points.npy": claim}))
    refused(saved, "arrays cannot be read")
    short = npy(np.zeros((4, 2), np.float32))[:-1]
    forge(saved, repacked(saved, {"points.npy": short}))
    refused(saved, "points has 31 bytes of values where 32 were expected")


@pytest.mark.parametrize("extra", ["../escaped.npy", "/escaped.npy", "more.npy", "points.npy/../x"])
def test_a_member_too_many_is_refused(saved: Path, tmp_path: Path, extra: str) -> None:
    forge(saved, repacked(saved, {extra: npy(np.zeros(1))}))
    refused(saved, "its arrays are")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["animals"]


def test_a_member_too_few_is_refused(saved: Path) -> None:
    forge(saved, repacked(saved, {"right_top5.npy": None}))
    refused(saved, "expected minimum, maximum, points, right_top1, right_top5")


def test_another_compression_is_refused(saved: Path) -> None:
    forge(saved, repacked(saved, {}, zipfile.ZIP_LZMA))
    refused(saved, "compressed in a way that jetsel does not write")


def test_arrays_that_are_no_archive_are_refused(saved: Path) -> None:
    forge(saved, b"not a zip file, but of the right hash")
    refused(saved, "arrays cannot be read")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"photographs": 10**15}, "would take more than"),
        ({"photographs": 2**62}, "would take more than"),
        ({"photographs": 50_000}, "claims"),
        ({"photographs": 0}, "cannot be understood"),
        ({"arrays_bytes": 10**12}, "cannot be understood"),
        ({"criteria": ["top1", "../top5"]}, "cannot be understood"),
        ({"criteria": ["top1"]}, "its arrays are"),
        ({"facts": {}}, "cannot be understood"),
        ({"unknown": 1}, "cannot be understood"),
    ],
)
def test_a_manifest_that_claims_too_much_is_refused(saved: Path, changes: dict[str, Any], reason: str) -> None:
    forge(saved, **changes)
    refused(saved, reason)


def test_a_manifest_that_contradicts_itself_is_refused(saved: Path) -> None:
    facts = json.loads((saved / MANIFEST).read_bytes())["body"]["facts"]
    forge(saved, facts=facts | {"k": 5})
    refused(saved, "k is 5, but it has 4 photographs; recalibrate")
