"""A model comes into a folder whole and leaves it whole; what others need stays. Kills are in tests/system."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from jetsel.base.errors import ManifestError
from jetsel.zoo import Model, scan, verify
from jetsel.zoo.manifest import manifest_of
from jetsel.zoo.placing import put, take_out, working_folder
from tests.unit.zoo.making import LABELS, WHOLE, described

OTHER = WHOLE + b"\x08\x07"


def place(folder: Path, name: str, *, replaced: Model | None = None, weights: bytes = WHOLE) -> Path:
    sha256 = hashlib.sha256(weights).hexdigest()
    with working_folder(folder) as work:
        (work / "copy").write_bytes(weights)
        plain = described(name=name, file=f"pets.{name}.{sha256[:12]}.onnx", sha256=sha256, labels="pets.tsv")
        return put(work, work / "copy", LABELS.encode(), manifest_of(plain), replaced)


def models(folder: Path) -> dict[str, Model]:
    zoo = scan([folder])
    assert zoo.broken == ()
    found = {model.manifest.name: model for family in zoo.families.values() for model in family.models}
    for model in found.values():
        verify(model)
    return found


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="No such file"), working_folder(tmp_path / "models") as work:
        (work / "nothing").rename(work / "copy")
    assert names(tmp_path / "models") == set()
    (tmp_path / "file").write_text("")
    with pytest.raises(ManifestError, match="another folder with --folder"), working_folder(tmp_path / "file" / "in"):
        raise AssertionError("there is no such place")


def test_a_broken_manifest_of_the_same_name_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "pets.small.json").write_text("{")
    with pytest.raises(ManifestError, match="already exists, see jetsel models list"):
        place(tmp_path, "small")
    assert names(tmp_path) == {"pets.small.json"}


def test_one_in_the_place_of_another_takes_its_weights_away(tmp_path: Path) -> None:
    place(tmp_path, "small")
    old = models(tmp_path)["small"]
    place(tmp_path, "small", replaced=old, weights=OTHER)
    new = models(tmp_path)["small"]
    assert new.manifest.sha256 != old.manifest.sha256
    assert names(tmp_path) == {"pets.small.json", new.manifest.file, "pets.tsv"}
    new.path.write_bytes(b"damaged")
    place(tmp_path, "small", replaced=new, weights=OTHER)
    assert models(tmp_path)["small"].manifest == new.manifest


def test_labels_stay_while_a_model_uses_them(tmp_path: Path) -> None:
    place(tmp_path, "small")
    place(tmp_path, "large")
    take_out(models(tmp_path)["small"])
    assert list(models(tmp_path)) == ["large"]
    assert len(names(tmp_path)) == 3
    take_out(models(tmp_path)["large"])
    assert names(tmp_path) == set()


def test_nothing_else_goes_while_a_manifest_cannot_be_read(tmp_path: Path) -> None:
    for content in (b'{"labels": "pets.tsv",', b"\xff", b"[" * 60_000):
        place(tmp_path, "small")
        model = models(tmp_path)["small"]
        (tmp_path / "mine.json").write_bytes(content)
        take_out(model)
        assert names(tmp_path) == {"mine.json", "pets.tsv", model.manifest.file}
        (tmp_path / "mine.json").unlink()
