"""A repository in an object store: the same calls against a real S3-compatible server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jetsel.addons.fleet import publishing
from jetsel.addons.fleet.reading import fetch, read_bundle, read_index
from jetsel.addons.fleet.storage import Storage
from jetsel.base.errors import RepositoryError
from jetsel.zoo import scan
from tests.unit.addons.fleet.object_store import bucket
from tests.unit.addons.fleet.published import family_folder, pair, publish


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with bucket(monkeypatch) as address:
        yield address


def test_a_family_goes_through_an_object_store(url: str, tmp_path: Path) -> None:
    storage, key = Storage(url), pair(tmp_path, "key")
    publishing.init(storage, [key.private])
    first = publish(storage, family_folder(tmp_path / "one", "small", "large"), key)
    second = publish(storage, family_folder(tmp_path / "two", "small"), key)
    assert first is not None
    assert second is not None
    index, _ = read_index(storage, [key.public])
    bundle, _ = read_bundle(storage, index.bundles[0], [key.public])
    assert scan([fetch(storage, bundle, tmp_path / "device")]).families
    assert publishing.garbage(storage, [key.public]) == []  # too young
    for one in publishing.garbage(storage, [key.public], now_s=time.time() + 3601):
        storage.remove(one.name)
    blobs = {one.name for one in storage.list() if one.name.startswith("blobs/")}
    assert blobs == {file.blob for file in second.files}
    with pytest.raises(RepositoryError, match="repo init"):
        read_index(Storage("s3://models/elsewhere"), [key.public])
