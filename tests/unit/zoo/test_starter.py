"""The family that ships with jetsel is whole, small, and a ladder worth choosing from."""

from __future__ import annotations

from functools import cache

from jetsel.zoo import STARTER, Family, scan, verify
from jetsel.zoo.onnx_model import read_model


@cache
def family() -> Family:
    zoo = scan([STARTER])
    assert zoo.broken == ()
    assert list(zoo.families) == ["starter"]
    return zoo.families["starter"]


def test_a_hundred_classes_with_wordnet_identifiers() -> None:
    labels = family().labels
    assert len(labels.wnids) == len(labels.names) == 100
    assert all(wnid[0] == "n" and wnid[1:].isdigit() and len(wnid) == 9 for wnid in labels.wnids)
    assert labels.names[labels.wnids.index("n02123045")] == "tabby"


def test_every_file_is_the_one_that_a_manifest_means_and_all_are_small() -> None:
    for model in family().models:
        verify(model)
        assert "research" in (model.manifest.notice or "")
        opsets = [entry.version for entry in read_model(model.path).opset_import if not entry.domain]
        assert max(opsets) <= 13, "an old runtime can load it"
    assert {model.manifest.file for model in family().models} == {path.name for path in STARTER.glob("*.onnx")}
    assert sum(path.stat().st_size for path in STARTER.rglob("*") if path.is_file()) <= 30_000_000
