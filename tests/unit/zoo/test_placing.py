"""A model comes into a folder whole and leaves it whole; what others need stays. Kills are in tests/system."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from jetsel.errors import ManifestError
from jetsel.zoo import Model, scan, verify
from jetsel.zoo.manifest import manifest_of
from jetsel.zoo.placing import copy_weights, put, take_out, workplace
from tests.unit.zoo.making import LABELS, WHOLE, described, put_model


def place(folder: Path, name: str, *, labels: str = LABELS, replaced: Model | None = None, suffix: bytes = b"") -> Path:
    source = folder.parent / "given.onnx"
    source.write_bytes(WHOLE)
    with workplace(folder) as aside:
        theirs, ours = copy_weights(source, aside / "copy", suffix)
        assert theirs == hashlib.sha256(WHOLE).hexdigest()
        plain = described(name=name, file=f"pets.{name}.{ours[:12]}.onnx", sha256=ours, labels="pets.tsv")
        return put(aside, aside / "copy", labels.encode(), manifest_of(plain), replaced)


def models(folder: Path) -> dict[str, Model]:
    zoo = scan([folder])
    assert zoo.broken == ()
    found = {model.manifest.name: model for family in zoo.families.values() for model in family.models}
    for model in found.values():
        verify(model)
    return found


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_model_is_its_manifest_weights_and_labels(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    assert place(folder, "small") == folder / "pets.small.json"
    model = models(folder)["small"]
    assert model.path.read_bytes() == WHOLE
    assert names(folder) == {"pets.small.json", model.manifest.file, "pets.tsv"}


def test_what_is_appended_is_hashed(tmp_path: Path) -> None:
    place(tmp_path / "models", "small", suffix=b"\x08\x07")
    assert models(tmp_path / "models")["small"].path.read_bytes() == WHOLE + b"\x08\x07"


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="cannot be read"), workplace(tmp_path / "models") as aside:
        copy_weights(tmp_path / "nowhere.onnx", aside / "copy")
    assert not (tmp_path / "models").exists()
    place(tmp_path / "models", "small")
    before = names(tmp_path / "models")
    with pytest.raises(ManifestError, match="cannot be read"), workplace(tmp_path / "models") as aside:
        copy_weights(tmp_path / "nowhere.onnx", aside / "copy")
    assert names(tmp_path / "models") == before


def test_a_folder_that_cannot_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ManifestError, match="name another folder with --folder"), workplace(tmp_path / "file" / "in"):
        raise AssertionError("there is no such place")


def test_a_broken_manifest_of_the_same_name_is_not_overwritten(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "pets.small.json").write_text("{")
    with pytest.raises(ManifestError, match="is there already and cannot be used"):
        place(folder, "small")
    assert names(folder) == {"pets.small.json"}


def test_one_in_the_place_of_another_takes_its_weights_away(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    place(folder, "small")
    old = models(folder)["small"]
    place(folder, "small", replaced=old, suffix=b"\x08\x07")
    new = models(folder)["small"]
    assert new.manifest.sha256 != old.manifest.sha256
    assert names(folder) == {"pets.small.json", new.manifest.file, "pets.tsv"}
    place(folder, "small", replaced=new, suffix=b"\x08\x07")
    assert models(folder)["small"].manifest == new.manifest


def test_the_replaced_ones_own_names_are_kept_or_cleared(tmp_path: Path) -> None:
    put_model(tmp_path, name="small")
    place(tmp_path, "small", replaced=models(tmp_path)["small"])
    assert names(tmp_path) - {"given.onnx"} == {"small.json", models(tmp_path)["small"].manifest.file, "pets.tsv"}


def test_labels_stay_while_a_model_uses_them(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    place(folder, "small")
    place(folder, "large")
    take_out(models(folder)["small"])
    assert list(models(folder)) == ["large"]
    assert len(names(folder)) == 3
    take_out(models(folder)["large"])
    assert names(folder) == set()


def test_nothing_else_goes_while_a_manifest_cannot_be_read(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    place(folder, "small")
    model = models(folder)["small"]
    (folder / "mine.json").write_text('{"labels": "pets.tsv",')
    take_out(model)
    assert names(folder) == {"mine.json", "pets.tsv", model.manifest.file}


def test_a_manifest_that_changed_meanwhile_is_not_removed(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    path = place(folder, "small")
    model = models(folder)["small"]
    path.write_text(path.read_text().replace("made by a test", "made by another"))
    with pytest.raises(ManifestError, match="has changed meanwhile"):
        take_out(model)
    assert list(models(folder)) == ["small"]
