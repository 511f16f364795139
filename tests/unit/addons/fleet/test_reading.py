"""Keys, and a device's side against a hostile repository and a bad way to it: nothing unverified is ever in place."""

import gzip
import hashlib
import os
import stat
from pathlib import Path

import msgspec
import pytest

from jetsel.addons.fleet.documents import INDEX, Bundle, Entry, File, Plan, PlannedFamily
from jetsel.addons.fleet.reading import fetch, read_bundle, read_index, read_plan
from jetsel.addons.fleet.signing import make_key, public_key, read_key, sign, unwrap
from jetsel.addons.fleet.sources import FolderRepository, HttpRepository, repository_of
from jetsel.addons.fleet.storage import Storage
from jetsel.base.errors import ConfigError, RepositoryError
from jetsel.zoo import scan
from tests.unit.addons.fleet.published import Pair, pair, publish, served
from tests.unit.addons.test_http_client import HEAD, replying


def bundle_of(repository: Path, key: Pair) -> Bundle:
    source = FolderRepository(repository)
    index, _ = read_index(source, [key.public])
    return read_bundle(source, index.bundles[0], [key.public])[0]


def one_file(repository: Path, content: bytes, blob: bytes, *, size: int | None = None) -> Bundle:
    """A bundle of one file with this content, as it is announced, and this blob in its place."""
    sha256 = hashlib.sha256(content).hexdigest()
    file = File(name="a", sha256=sha256, bytes=len(content), compressed_bytes=len(blob) if size is None else size)
    (repository / file.blob).write_bytes(blob)
    return Bundle(family="one", version=1, models=(), files=(file,))


def test_a_download_that_is_cut_again_and_again_goes_on_where_it_was(
    repository: Path, key: Pair, tmp_path: Path
) -> None:
    with served(repository) as (server, url):
        server.cuts_after = 97
        source = HttpRepository(url)
        index, _ = read_index(source, [key.public])
        bundle, _ = read_bundle(source, index.bundles[0], [key.public])
        folder = fetch(source, bundle, tmp_path / "device")
        assert "bytes=97-" in server.ranges
    assert list(scan([folder]).families) == ["pets"]
    assert fetch(FolderRepository(tmp_path / "gone"), bundle, tmp_path / "device") == folder  # nothing is fetched again


def test_a_cut_at_every_byte_of_a_blob_is_gone_on_from(repository: Path, key: Pair, tmp_path: Path) -> None:
    bundle = one_file(repository, b"hello" * 9, gzip.compress(b"hello" * 9, mtime=0))
    file = bundle.files[0]
    whole = (repository / file.blob).read_bytes()
    for cut in range(len(whole)):
        into = tmp_path / f"device{cut}"
        (repository / file.blob).write_bytes(whole[:cut])
        with pytest.raises(RepositoryError, match="too early"):
            fetch(FolderRepository(repository), bundle, into)
        assert not (into / "one-1").exists()
        (repository / file.blob).write_bytes(whole)
        assert (fetch(FolderRepository(repository), bundle, into) / "a").read_bytes() == b"hello" * 9


def test_a_server_without_ranges_is_asked_for_the_whole(repository: Path, key: Pair, tmp_path: Path) -> None:
    bundle = bundle_of(repository, key)
    with served(repository) as (server, url):
        server.knows_ranges = False
        server.cuts_after = 10
        with pytest.raises(RepositoryError, match="try again"):
            fetch(HttpRepository(url), bundle, tmp_path / "device")
        server.cuts_after = None
        assert scan([fetch(HttpRepository(url), bundle, tmp_path / "device")]).families


@pytest.mark.parametrize(
    ("blob", "size", "words"),
    [
        (gzip.compress(b"jello", mtime=0), None, "altered"),
        (gzip.compress(bytes(50_000_000)), None, "expands to more"),
        (gzip.compress(b"hello", mtime=0) + bytes(1000), 25, "larger"),
        (b"no gzip at all", None, "altered"),
        (gzip.compress(b"hello", mtime=0)[:-4], None, "altered"),
    ],
    ids=["altered", "bomb", "longer", "no gzip", "cut short"],
)
def test_a_blob_that_is_not_what_was_signed_is_refused(
    repository: Path, tmp_path: Path, blob: bytes, size: int | None, words: str
) -> None:
    bundle = one_file(repository, b"hello", blob, size=size)
    with pytest.raises(RepositoryError, match=words):
        fetch(FolderRepository(repository), bundle, tmp_path / "device")
    assert not (tmp_path / "device" / "one-1").exists()


def test_a_document_that_is_altered_or_cut_is_refused(repository: Path, key: Pair) -> None:
    index = repository / INDEX
    whole = index.read_bytes()
    for place in range(0, len(whole) - 2, 7):
        index.write_bytes(whole[:place])
        with pytest.raises(RepositoryError, match="truncated"):
            read_index(FolderRepository(repository), [key.public])
        index.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(RepositoryError, match=INDEX):
            read_index(FolderRepository(repository), [key.public])
    index.write_bytes(whole)
    entry = read_index(FolderRepository(repository), [key.public])[0].bundles[0]
    (repository / entry.path).write_bytes(whole)  # signed, but not what the index means
    with pytest.raises(RepositoryError, match="altered"):
        read_bundle(FolderRepository(repository), entry, [key.public])


def test_who_has_no_trusted_key_is_refused(repository: Path, key: Pair, tmp_path: Path) -> None:
    with pytest.raises(RepositoryError, match="not by a trusted key"):
        read_index(FolderRepository(repository), [pair(tmp_path, "other").public])
    index = repository / INDEX
    index.write_bytes(index.read_bytes().replace(key.public.encode(), b""))
    with pytest.raises(RepositoryError, match="not by a trusted key"):
        read_index(FolderRepository(repository), [key.public])


def test_a_bundle_names_no_file_outside_of_its_folder() -> None:
    file = {"name": "../a", "sha256": "0" * 64, "bytes": 1, "compressed_bytes": 1}
    with pytest.raises(msgspec.ValidationError, match="name"):
        msgspec.convert(file, File)


def test_other_addresses_are_refused() -> None:
    with pytest.raises(ConfigError, match="http"):
        repository_of("ftp://host/folder")
    with pytest.raises(ConfigError, match="read-only"):
        Storage("https://host/folder")
    with pytest.raises(RepositoryError, match="jetsel repo init"):
        read_index(repository_of("/nonexistent"), [])


def test_a_key_is_for_its_owner_and_is_not_overwritten(tmp_path: Path) -> None:
    public = make_key(tmp_path / "key")
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert read_key(tmp_path / "key.pub") == public == public_key(read_key(tmp_path / "key"))
    with pytest.raises(RepositoryError, match="overwritten"):
        make_key(tmp_path / "key")
    (tmp_path / "key").unlink()
    with pytest.raises(RepositoryError, match="overwritten"):
        make_key(tmp_path / "key")
    assert not (tmp_path / "key").exists()


def test_what_is_no_key_says_how_to_make_one(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret")
    for name in ("key", "nothing"):
        with pytest.raises(RepositoryError, match="jetsel repo key"):
            read_key(tmp_path / name)


def test_a_redirect_to_another_server_gets_no_token() -> None:
    with replying(HEAD + b"Content-Length: 2\r\n\r\n{}") as (other, elsewhere):
        redirect = f"HTTP/1.0 302 Found\r\nLocation: http://127.0.0.1:{other}/x\r\n\r\n".encode()
        with (
            replying(redirect) as (port, here),
            HttpRepository(f"http://127.0.0.1:{port}", "secret").open("a")[0] as stream,
        ):
            assert stream.read(9) == b"{}"
    assert b"Bearer secret" in here[0]
    assert b"secret" not in elsewhere[0]


@pytest.mark.parametrize("location", ["http://[::1/x", "ftp://127.0.0.1:1/x"])
def test_a_redirect_to_no_web_server_is_a_broken_way(location: str) -> None:
    redirect = f"HTTP/1.0 302 Found\r\nLocation: {location}\r\n\r\n".encode()
    with replying(redirect) as (port, _), pytest.raises(OSError, match="the server redirects to"):
        HttpRepository(f"http://127.0.0.1:{port}").open("a")


def test_a_pipe_in_the_place_of_a_plan_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "plans").mkdir()
    os.mkfifo(tmp_path / "plans/one.json")
    with pytest.raises(RepositoryError, match="not a regular file"):
        read_plan(FolderRepository(tmp_path), "one", [])


def test_a_document_of_another_version_than_the_index_names_is_refused(repository: Path, key: Pair) -> None:
    source = FolderRepository(repository)
    later = msgspec.structs.replace(read_index(source, [key.public])[0].bundles[0], version=2)
    with pytest.raises(RepositoryError, match="does not match the index"):
        read_bundle(source, later, [key.public])


def test_a_serial_that_no_line_of_usage_can_hold_is_refused(key: Pair) -> None:
    entry = Entry(family="pets", version=1, sha256="0" * 64)
    plan = Plan(device="one", serial=2**53 + 1, families=(PlannedFamily(bundle=entry, models=("small",)),))
    with pytest.raises(RepositoryError, match="serial"):
        unwrap(sign(plan, [key.private]), Plan, [key.public], "plan")


def test_a_damaged_blob_of_the_right_size_is_published_again(repository: Path, key: Pair) -> None:
    blob = next((repository / "blobs").iterdir())
    whole = blob.read_bytes()
    blob.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
    assert publish(Storage(str(repository)), repository.parent / "models", key) is not None
    assert blob.read_bytes() == whole
