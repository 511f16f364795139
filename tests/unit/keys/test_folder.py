"""The folders of keys: whose are read, what is refused and how it is repaired, and nothing written over."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jetsel.errors import ConfigError
from jetsel.keys import KeyFolder, files, generate
from jetsel.keys.certificate import write
from jetsel.keys.folder import write_pair


def test_a_weak_key_among_the_allowed_is_left_out(folder: KeyFolder) -> None:
    (folder.path / "allowed" / "zero.key").write_text(f'public-key = "{"0" * 40}"\n')
    found = folder.allowed()
    assert not found.by_public
    assert "holds no CURVE key" in found.left_out[0]


@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
def test_folders_of_keys_are_never_for_others_to_change(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        KeyFolder(tmp_path / "a" / "b" / "c").make_server(None)
        files.make_folder(tmp_path / "d" / "e", 0o700)
    finally:
        os.umask(before)
    modes = {name: (tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b", "d", "d/e")}
    assert modes == {"a": 0o755 & ~umask, "a/b": 0o755 & ~umask, "d": 0o755 & ~umask, "d/e": 0o700}
    for folder in ("a/b/c", "a/b/c/allowed"):
        assert (tmp_path / folder).stat().st_mode & 0o777 == 0o755


def test_who_is_allowed_is_read_with_what_they_may(folder: KeyFolder) -> None:
    camera, boss = generate().public, generate().public
    folder.allow("camera", camera, is_admin=False)
    folder.allow("boss", boss, is_admin=True)
    found = folder.allowed()
    assert {key.name: (public, key.is_admin) for public, key in found.by_public.items()} == {
        "boss": (boss, True),
        "camera": (camera, False),
    }
    assert found.left_out == ()
    folder.revoke("camera")
    assert set(folder.allowed().by_public) == {boss}


def test_nothing_is_written_over_unless_asked(folder: KeyFolder, tmp_path: Path) -> None:
    before = folder.server()
    with pytest.raises(ConfigError, match="add --replace"):
        folder.make_server(None)
    folder.allow("camera", generate().public, is_admin=False)
    with pytest.raises(ConfigError, match="is there already, with another key: add --replace"):
        folder.allow("camera", generate().public, is_admin=True)
    assert folder.server() == before
    assert not any(key.is_admin for key in folder.allowed().by_public.values())
    public, secret = tmp_path / "me.key", tmp_path / "me.key_secret"
    public.write_text("mine")
    with pytest.raises(ConfigError, match="is there already"):
        write_pair(public, secret, "me", None)
    assert (public.read_text(), secret.exists()) == ("mine", False)
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]
    folder.make_server(None, replace=True)
    assert folder.server() != before


def test_a_key_that_is_allowed_already_stays_and_what_it_may_is_changed_only_where_asked(folder: KeyFolder) -> None:
    public = generate().public
    file = folder.allow("camera", public, is_admin=False)
    before = file.stat()
    assert folder.allow("camera", public, is_admin=False) == file
    assert file.stat() == before, "nothing was written"
    with pytest.raises(ConfigError, match=r"camera is allowed already, to ask alone: .* add --replace"):
        folder.allow("camera", public, is_admin=True)
    assert not folder.allowed().by_public[public].is_admin
    folder.allow("camera", public, is_admin=True, replace=True)
    assert folder.allowed().by_public[public].is_admin
    with pytest.raises(ConfigError, match=r"camera is allowed already, to ask and change: .* add --replace"):
        folder.allow("camera", public, is_admin=False)


def test_the_command_that_repairs_a_folder_names_it(tmp_path: Path) -> None:
    folder = KeyFolder(tmp_path / "elsewhere")
    for ask in (folder.server, folder.allowed):
        with pytest.raises(ConfigError, match=rf"sudo jetsel keys new --server --folder {folder.path}$"):
            ask()


SPOILT: dict[str, tuple[Callable[[Path], object], str]] = {
    "others may write it": (lambda file: file.chmod(0o646), r"can be changed by others \(mode 0646\): chmod go-w"),
    "it is no key": (lambda file: file.write_text("hello"), "holds no CURVE key"),
    "it is a link": (lambda file: (file.rename(file.with_suffix(".x")), file.symlink_to("camera.x")), "cannot be read"),
    "it is a folder": (lambda file: (file.unlink(), file.mkdir()), "is no file"),
    "it is a secret key": (lambda file: file.write_text(write(generate(), "x")), "holds a secret key"),
    "it is too large": (lambda file: file.write_bytes(b"#" * 4097), "more than the 4096 bytes"),
    "its admin is neither": (
        lambda file: file.write_text(file.read_text().replace('"no"', '"maybe"')),
        'write admin = "yes" or "no"',
    ),
}


@pytest.mark.parametrize("fault", SPOILT)
def test_a_file_that_cannot_be_used_is_left_out_with_the_reason(folder: KeyFolder, fault: str) -> None:
    folder.allow("good", generate().public, is_admin=False)
    spoil, said = SPOILT[fault]
    spoil(folder.allow("camera", generate().public, is_admin=False))
    found = folder.allowed()
    assert [key.name for key in found.by_public.values()] == ["good"]
    (line,) = found.left_out
    with pytest.raises(ConfigError, match=said):
        raise ConfigError(line)


def test_one_key_under_two_names_counts_once(folder: KeyFolder) -> None:
    public = generate().public
    folder.allow("a", public, is_admin=False)
    folder.allow("b", public, is_admin=True)
    found = folder.allowed()
    assert [(key.name, key.is_admin) for key in found.by_public.values()] == [("a", False)]
    assert "is the key of a again" in found.left_out[0]


def test_a_file_of_more_than_may_be_is_not_read_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "huge.key"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ConfigError, match="more than the 4096 bytes"):
        files.read(path, forbidden=files.WRITABLE)


def test_a_strangers_file_is_refused_with_the_command_that_repairs_it(folder: KeyFolder) -> None:
    stranger = KeyFolder(folder.path, frozenset({0, 4_000_000_000}) - {os.geteuid()})
    with pytest.raises(ConfigError, match=r"neither root nor the one that uses it: sudo chown 4000000000 "):
        stranger.server()
