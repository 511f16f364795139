"""Folders of manifests become families, and nothing that is wrong with one model hides another."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from jetsel.base.config import Models
from jetsel.base.errors import ConfigError, ManifestError
from jetsel.zoo import STARTER, Labels, Model, Zoo, model_folders, scan, verify
from jetsel.zoo.labels import MAX_BYTES as MAX_LABELS_BYTES
from jetsel.zoo.manifest import MAX_BYTES as MAX_MANIFEST_BYTES
from jetsel.zoo.manifest import manifest_of
from jetsel.zoo.placing import place_model, remove_model, working_folder
from jetsel.zoo.store import MAX_WEIGHTS_BYTES, planned_folders
from tests.unit.zoo.making import LABELS, WHOLE, described, put_model

OTHER_LABELS = "n01855672\tgoose\nn02051845\tpelican\n"


def reasons(zoo: Zoo) -> list[str]:
    return [broken.reason for broken in zoo.broken]


def test_a_family_is_ordered_by_time_and_by_operations_where_an_older_version_counted_them(tmp_path: Path) -> None:
    put_model(tmp_path, name="slow", multiply_accumulates=..., latency_ms=9.5)
    put_model(tmp_path, name="old", multiply_accumulates=100_000_000)  # about 5 ms
    put_model(tmp_path, name="like-old", multiply_accumulates=100_000_000)
    put_model(tmp_path, name="quick", multiply_accumulates=900_000_000, latency_ms=0.5)
    models = scan([tmp_path]).families["pets"].models
    assert [model.manifest.name for model in models] == ["quick", "like-old", "old", "slow"]
    assert models[0].path == tmp_path / "small.onnx"


def test_one_broken_manifest_hides_no_other(tmp_path: Path) -> None:
    put_model(tmp_path, name="good")
    put_model(tmp_path, name="bad", parameters=0)
    (tmp_path / "odd.json").write_text("{")
    (tmp_path / "readme.txt").write_text("not a manifest")
    zoo = scan([tmp_path])
    assert [model.manifest.name for model in zoo.families["pets"].models] == ["good"]
    assert [broken.path.name for broken in zoo.broken] == ["bad.json", "odd.json"]
    assert not any(str(tmp_path) in reason for reason in reasons(zoo)), "the path stands beside the reason already"


def test_a_folder_that_is_not_there_is_reported(tmp_path: Path) -> None:
    put_model(tmp_path, name="good")
    zoo = scan([tmp_path / "none", tmp_path])
    assert list(zoo.families) == ["pets"]
    repair = "make the folder, or take it out of models.paths"
    assert [broken.path for broken in zoo.broken] == [tmp_path / "none"]
    assert reasons(zoo) == [f"it cannot be read: No such file or directory; {repair}"]


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        ({"name": "b", "labels": OTHER_LABELS}, "family: 'pets' has other labels in {first}"),
        ({"name": "a", "parameters": 2}, "family 'pets' has 'a' in {first}; choose another name"),
    ],
    ids=["other labels", "a name twice"],
)
def test_what_contradicts_the_first_manifest_is_refused(tmp_path: Path, second: dict[str, Any], reason: str) -> None:
    first = put_model(tmp_path / "first", name="a", parameters=1)
    put_model(tmp_path / "second", **second)
    zoo = scan([tmp_path / "first", tmp_path / "second"])
    assert [(one.manifest.name, one.manifest.parameters) for one in zoo.families["pets"].models] == [("a", 1)]
    assert reason.format(first=first) in reasons(zoo)[0]


@pytest.mark.parametrize("key", ["manifest", "file", "labels"])
def test_a_link_out_of_the_folder_is_refused(tmp_path: Path, key: str) -> None:
    manifest = put_model(tmp_path / "models", name="a")
    target = manifest if key == "manifest" else tmp_path / "models" / described()[key]
    target.rename(tmp_path / "outside")
    target.symlink_to("../outside")
    zoo = scan([tmp_path / "models"])
    assert zoo.families == {}
    assert f"{key}: {target.name} is a link out of its folder" in reasons(zoo)[0]


def test_a_link_inside_the_folder_and_a_link_to_the_folder_are_followed(tmp_path: Path) -> None:
    put_model(tmp_path / "models", name="a")
    (tmp_path / "models" / "small.onnx").rename(tmp_path / "models" / "v1.onnx")
    (tmp_path / "models" / "small.onnx").symlink_to("v1.onnx")
    (tmp_path / "current").symlink_to("models")
    zoo = scan([tmp_path / "current"])
    assert zoo.broken == ()
    verify(zoo.families["pets"].models[0])


@pytest.mark.parametrize("key", ["file", "labels"])
def test_a_missing_file_is_refused(tmp_path: Path, key: str) -> None:
    put_model(tmp_path, name="a")
    (tmp_path / described()[key]).unlink()
    assert f"{key}: there is no file {described()[key]} beside the manifest" in reasons(scan([tmp_path]))[0]


def test_verify_refuses_one_changed_bit_and_what_is_missing(tmp_path: Path) -> None:
    put_model(tmp_path)
    (model,) = scan([tmp_path]).families["pets"].models
    content = bytearray(model.path.read_bytes())
    content[-1] ^= 1
    model.path.write_bytes(content)
    with pytest.raises(ManifestError, match=r"small\.onnx: sha256 is [0-9a-f]{64}, but the manifest of small has"):
        verify(model)
    model.path.unlink()
    with pytest.raises(ManifestError, match=r"small\.onnx: cannot be read"):
        verify(model)


def test_the_owners_own_folder_is_read_once_it_is_there(tmp_path: Path) -> None:
    environment = {"STATE_DIRECTORY": str(tmp_path)}
    assert model_folders(Models(), environment) == [STARTER]
    (tmp_path / "models").mkdir()
    assert model_folders(Models(), environment) == [STARTER, tmp_path / "models"]
    assert model_folders(Models(starter=False, paths=["/a", "/b"]), environment) == [
        Path("/a"),
        Path("/b"),
        tmp_path / "models",
    ]
    assert model_folders(Models(starter=False, paths=[str(tmp_path / "models")]), environment) == [tmp_path / "models"]


def test_a_link_to_a_version_that_is_gone_is_named_with_the_repair(tmp_path: Path) -> None:
    (tmp_path / "state-agent/installed").mkdir(parents=True)
    (tmp_path / "state-agent/installed/current").symlink_to("7")
    with pytest.raises(ConfigError, match="remove it"):
        planned_folders({"STATE_DIRECTORY": str(tmp_path / "state")})


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


OTHER = WHOLE + b"\x08\x07"


def place(folder: Path, name: str, *, replaced: Model | None = None, weights: bytes = WHOLE) -> Model:
    sha256 = hashlib.sha256(weights).hexdigest()
    with working_folder(folder) as work:
        (work / "copy").write_bytes(weights)
        plain = described(name=name, file=f"pets.{name}.{sha256[:12]}.onnx", sha256=sha256, labels="pets.tsv")
        return place_model(work, work / "copy", Labels.parse(LABELS.encode(), "pets.tsv"), manifest_of(plain), replaced)


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
    remove_model(models(tmp_path)["small"])
    assert list(models(tmp_path)) == ["large"]
    assert len(names(tmp_path)) == 3
    remove_model(models(tmp_path)["large"])
    assert names(tmp_path) == set()


def test_nothing_else_goes_while_a_manifest_cannot_be_read(tmp_path: Path) -> None:
    for content in (b'{"labels": "pets.tsv",', b"\xff", b"[" * 60_000):
        place(tmp_path, "small")
        model = models(tmp_path)["small"]
        (tmp_path / "mine.json").write_bytes(content)
        remove_model(model)
        assert names(tmp_path) == {"mine.json", "pets.tsv", model.manifest.file}
        (tmp_path / "mine.json").unlink()
