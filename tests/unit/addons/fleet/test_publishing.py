"""Publishing to a folder and to S3: equal files once, versions rise, a killed writer leaves garbage at most."""

import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from jetsel.addons.fleet import publishing
from jetsel.addons.fleet.documents import INDEX
from jetsel.addons.fleet.reading import fetch, read_bundle, read_index
from jetsel.addons.fleet.storage import Storage
from jetsel.artefact.installed import shipped
from jetsel.base.errors import RepositoryError
from jetsel.zoo import scan
from tests.unit.addons.fleet.object_store import bucket
from tests.unit.addons.fleet.published import Pair, family_folder, pair, publish

HOUR_S = 3600.0


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as variables, bucket(variables.setenv) as url:
        yield url


@pytest.fixture(params=["folder", "s3"])
def storage(request: pytest.FixtureRequest, store: str, tmp_path: Path) -> Storage:
    return Storage(str(tmp_path / "repository") if request.param == "folder" else f"{store}/{uuid.uuid4().hex}")


def test_what_is_published_is_the_family_again(storage: Storage, key: Pair, tmp_path: Path) -> None:
    publishing.init(storage, [key.private])
    family_folder(tmp_path / "models", "small", "large")
    assert publish(storage, tmp_path / "models", key) is not None
    index, signers = read_index(storage, [key.public])
    assert (index.serial, [entry.family for entry in index.bundles], signers) == (2, ["pets"], [key.public])
    bundle, _ = read_bundle(storage, index.bundles[0], [key.public])
    assert (bundle.version, [model.name for model in bundle.models]) == (1, ["small", "large"])
    folder = fetch(storage, bundle, tmp_path)
    found = scan([folder]).families["pets"]
    assert [model.manifest.name for model in found.models] == ["small", "large"]
    calibration = shipped(found.calibration_folder)
    assert calibration.usable_calibration().family == "pets"


def test_a_version_rises_with_what_changed_and_equal_files_are_stored_once(
    storage: Storage, key: Pair, tmp_path: Path
) -> None:
    publishing.init(storage, [key.private])
    with pytest.raises(RepositoryError, match="already"):
        publishing.init(storage, [key.private])
    with pytest.raises(RepositoryError, match="repo init"):
        read_index(Storage(storage.address("elsewhere")), [key.public])
    family_folder(tmp_path / "one", "small", "large")
    family_folder(tmp_path / "two", "small")
    first = publish(storage, tmp_path / "one", key)
    assert publish(storage, tmp_path / "one", key) is None
    blobs = {*storage.names("blobs")}
    second = publish(storage, tmp_path / "two", key)
    assert (first.version, second.version) == (1, 2)
    shared = {file.blob for file in first.files} & {file.blob for file in second.files}
    assert shared
    after = {*storage.names("blobs")}
    assert after == blobs | {file.blob for file in second.files}
    assert publishing.unused_objects(storage, [key.public], HOUR_S) == []  # too young
    unnamed = {one.name for one in publishing.unused_objects(storage, [key.public], HOUR_S, time.time() + 3601)}
    assert unnamed & blobs == {file.blob for file in first.files} - shared
    assert len(unnamed) == len(unnamed & blobs) + 1  # and the first bundle's document
    for name in unnamed:
        storage.remove(name)
    assert {*storage.names("blobs")} == {file.blob for file in second.files}


def test_what_is_young_by_the_storages_clock_stays(tmp_path: Path, key: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = Storage(str(tmp_path / "repository"))
    publishing.init(storage, [key.private])
    storage.write("blobs/unnamed.gz", b"")
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 86_400.0)
    assert publishing.unused_objects(storage, [key.public], HOUR_S) == []


def test_killed_at_any_write_the_list_is_whole_and_the_rest_is_garbage(
    storage: Storage, key: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publishing.init(storage, [key.private])
    family_folder(tmp_path / "models", "small")
    write, survived = storage.write, 0
    while True:
        left = survived

        def dying(name: str, content: bytes) -> None:
            nonlocal left
            if left == 0:
                raise KeyboardInterrupt
            left -= 1
            write(name, content)

        monkeypatch.setattr(storage, "write", dying)
        try:
            assert publish(storage, tmp_path / "models", key) is not None
            break
        except KeyboardInterrupt:
            survived += 1
        index, _ = read_index(storage, [key.public])
        assert (index.serial, index.bundles) == (1, ())
        left_over = {*storage.names("")} - {INDEX}
        assert {one.name for one in publishing.unused_objects(storage, [key.public], 0, time.time() + 1)} == left_over
        for name in left_over:
            storage.remove(name)
    assert survived >= 5


def test_a_key_takes_the_others_place(storage: Storage, key: Pair, tmp_path: Path) -> None:
    other = pair(tmp_path, "other")
    publishing.init(storage, [key.private])
    family_folder(tmp_path / "models", "small")
    publish(storage, tmp_path / "models", key)
    with pytest.raises(RepositoryError, match="not by a trusted key"):
        publish(storage, tmp_path / "models", other)
    publish(storage, tmp_path / "models", key, other)
    for trusted in (key, other):
        assert read_index(storage, [trusted.public])[0].serial == 3
    publish(storage, tmp_path / "models", other, trusted=(key,))
    assert read_index(storage, [key.public, other.public])[1] == [other.public]
    with pytest.raises(RepositoryError, match="not by a trusted key"):
        read_index(storage, [key.public])
