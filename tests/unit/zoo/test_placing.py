"""Which family new models belong to: never another task's with the same classes, unless its owner says so."""

import re
from pathlib import Path

import pytest

from jetsel.base.errors import ManifestError
from jetsel.base.names import RULE
from jetsel.base.weights import TrialRun
from jetsel.zoo import Labels, Zoo, scan
from jetsel.zoo.adding import add_head, derived_manifest
from jetsel.zoo.labels import labels_from_names
from jetsel.zoo.placing import FamilyRequest, NewFamily, choose_family, family_of_heads
from tests.unit.zoo.making import put_model

HOT = b"no\tno\nyes\tyes\n"
HOT_LABELS = Labels.parse(HOT, "l.txt")
TURNED = b"yes\tyes\nno\tno\n"
OTHERS = b"no\tno\nyes\tyes\nperhaps\tperhaps\n"


def put_from(origin: object, folder: Path, family: str, name: str = "s", labels: Labels = HOT_LABELS) -> None:
    """Write a model that was added from `origin`."""
    provenance = {"source": "a test", "origin": str(origin)}
    put_model(folder, name=name, family=family, labels=labels.content.decode(), provenance=provenance)


@pytest.fixture
def zoo(tmp_path: Path) -> Zoo:
    """One family `hot` of two models, which were added from the folder /nets."""
    for name in ("s", "l"):
        put_from("/nets", tmp_path, "hot", name)
    return scan([tmp_path])


def chosen(
    zoo: Zoo,
    name: str,
    *,
    family: str | None = None,
    likely: str | None = "fire",
    labels: bytes = HOT,
    origin: str | None = None,
    are_heads: bool = False,
    replace: bool = False,
) -> NewFamily:
    request = FamilyRequest(
        family=family,
        likely_family=likely,
        labels=Labels.parse(labels, "l.txt"),
        labels_from=Path("l.txt"),
        origin=origin,
    )
    return choose_family(zoo, request, [name], are_heads=are_heads, replace=replace)


def refused(zoo: Zoo, name: str, **how: object) -> str:
    with pytest.raises(ManifestError) as error:
        chosen(zoo, name, **how)  # type: ignore[arg-type]
    return str(error.value)


def test_the_only_family_with_these_classes_is_joined_from_the_same_place_alone(zoo: Zoo) -> None:
    joined = chosen(zoo, "m", origin="/nets")
    assert (joined.name, joined.labels.content) == ("hot", HOT)
    assert "for a family of its own, use --family NAME" in joined.notes[0]
    for origin in (None, "/others"):
        new = chosen(zoo, "m", origin=origin)
        assert (new.name, new.labels.content) == ("fire", HOT)
        (note,) = new.notes
        assert note.startswith("family fire is new")
        assert note.endswith("in one cascade with it, use --family hot")


def test_of_two_families_with_these_classes_none_is_joined_unless_it_is_named(zoo: Zoo, tmp_path: Path) -> None:
    put_from("/nets", tmp_path / "more", "cold")
    both = scan([tmp_path, tmp_path / "more"])
    assert both.broken == ()
    new = chosen(both, "m", origin="/nets")
    assert new.name == "fire"
    assert len(new.notes) == 2
    assert chosen(both, "m", family="cold") == NewFamily("cold", HOT_LABELS)
    assert chosen(both, "m", origin="/nets", likely="cold").name == "cold", "it would have this name anyway"


def test_a_name_that_is_taken_from_elsewhere_is_refused_with_what_joins_and_what_does_not(zoo: Zoo) -> None:
    said = refused(zoo, "m", likely="hot", origin="/others")
    assert "use --family hot; for a family of its own" in said
    assert "use --family hot --name NAME" in refused(zoo, "s", likely="hot")
    assert "--family hot" not in refused(zoo, "s", likely="hot", are_heads=True), "it could only be replaced"
    assert "other classes than l.txt (see perhaps)" in refused(zoo, "m", likely="hot", labels=OTHERS)
    assert "--family NAME; use small letters" in refused(zoo, "m", likely=None)


def test_a_family_that_is_named_is_joined_if_its_classes_are_the_same(zoo: Zoo) -> None:
    assert chosen(zoo, "m", family="fire") == NewFamily("fire", HOT_LABELS)
    assert chosen(zoo, "m", family="hot") == NewFamily("hot", HOT_LABELS)
    assert chosen(zoo, "m", family="hot", labels=HOT.replace(b"\n", b"\r\n")).labels.content == HOT, (
        "the family's own bytes"
    )
    assert chosen(zoo, "m", family="hot", labels=TURNED, are_heads=True).labels.content == HOT, "heads learn its order"
    assert "in another order" in refused(zoo, "m", family="hot", labels=TURNED)
    for are_heads in (False, True):
        said = refused(zoo, "s", family="hot", labels=OTHERS, are_heads=are_heads, replace=True)
        assert "(see perhaps) and keeps them until it is removed" in said


def test_heads_for_other_images_replace_none_unless_they_must(tmp_path: Path) -> None:
    put_model(tmp_path / "models", name="s", family="starter")
    starter = scan([tmp_path / "models"]).families["starter"]
    labels = labels_from_names(["defect", "ok"], "images")

    def family(zoo: Zoo, photos: str, name: str | None = None, *, replace: bool = False) -> tuple[str, list[str]]:
        made, there = family_of_heads(zoo, starter, name, tmp_path / photos, labels, replace=replace)
        assert made.labels == labels
        assert made.origin == str(tmp_path / photos)
        return made.name, list(there)

    assert family(scan([tmp_path / "models"]), "line-a") == ("line-a", [])
    put_from(tmp_path / "line-a", tmp_path / "heads", "line-a", labels=labels)
    zoo = scan([tmp_path / "models", tmp_path / "heads"])
    assert family(zoo, "line-b") == ("line-b", [])
    for photos, name in (("line-a", None), ("line-b", "line-a")):
        with pytest.raises(ManifestError) as error:
            family(zoo, photos, name)
        again = "; --replace trains them again" if photos == "line-a" else ""
        assert "has s already: for heads beside them" in str(error.value)
        assert str(error.value).endswith(
            f"--name KIND; for a family of its own, choose another name with --family{again}"
        )
        assert family(zoo, photos, name, replace=True) == ("line-a", ["s"])
    put_model(tmp_path / "models", name="x", family="deep")
    other = scan([tmp_path / "models"]).families["deep"]
    made, _ = family_of_heads(zoo, other, "line-a", tmp_path / "line-b", labels, replace=False)
    assert any("adds 1 heads of the backbone deep" in note and "use --name KIND" in note for note in made.notes)


def test_a_manifest_that_is_made_of_another_is_checked_too(tmp_path: Path) -> None:
    put_model(tmp_path, name="s")
    (backbone,) = scan([tmp_path]).families["pets"].models
    tried = TrialRun(None, 1.0)
    with pytest.raises(ManifestError, match=f"family: {re.escape(RULE)}"):
        add_head(backbone, b"head", 2, NewFamily("My Flowers", HOT_LABELS, "head"), tmp_path, None)
    with pytest.raises(ManifestError, match=f"name: {re.escape(RULE)}"):
        derived_manifest(backbone.manifest, "s" * 65, "0" * 64, HOT_LABELS, tried, 1, "made smaller")
    assert derived_manifest(backbone.manifest, "s-int8", "0" * 64, HOT_LABELS, tried, 1, "made smaller")
    assert len(list(tmp_path.glob("*.json"))) == 1


def test_of_two_families_the_one_from_the_same_place_is_trained_again_and_no_other(tmp_path: Path) -> None:
    for name, place in (("images", "/c1/images"), ("cam2", "/c2/images")):
        put_from(place, tmp_path / name, name)
    zoo = scan([tmp_path / "images", tmp_path / "cam2"])
    for replace in (False, True):
        found = chosen(zoo, "s", likely="images", origin="/c2/images", are_heads=True, replace=replace)
        assert found.name == "cam2"
    third = {"likely": "images", "origin": "/c3/images", "are_heads": True, "replace": True}
    assert "choose another name with --family" in refused(zoo, "s", **third)
