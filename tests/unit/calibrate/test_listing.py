"""What file servers, systems and sync programs put between a person's images, and what stands in their way."""

import os
from pathlib import Path

import pytest

from jetsel.base.errors import BadImageError
from jetsel.base.names import LeftOut, count_reasons, system_kind
from jetsel.calibrate.listing import folders_in, images_below, left_out_lines

FOLDERS_OF_SYSTEMS = """
@eaDir #recycle #snapshot @tmp @Recycle @Recently-Snapshot .@__thumb .zfs @GMT-2024.05.01-00.00.00 __MACOSX
.AppleDouble .Trashes $RECYCLE.BIN $Recycle.Bin FOUND.000 .Trash-1000 lost+found LOST.DIR .stversions .stfolder .sync
.dropbox.cache .tmp.driveupload .~tmp~ _gsdata_ cat.jpg.download
"""
FILES_OF_SYSTEMS = """
0.jpg@SynoEAStream SYNOPHOTO_THUMB_M.jpg ._0.jpg .DS_Store Thumbs.db Thumbs.db:encryptable ehthumbs.db Desktop.ini
AlbumArtSmall.jpg AlbumArt_{5FA05D35-A682-4AF6-96F7-0773E42D4D16}_Large.jpg 0.jpg:Zone.Identifier 0.jpg~ #0.jpg#
~syncthing~0.jpg.tmp .sync_a1b2.db .0.jpg.Ab3f1x 0.jpg.crdownload 0.jpg.part 0.jpg.!sync .0.jpg.icloud ~$notes.docx
sync.ffs_db
"""
OF_PERSONS = """cat recycle recycler snapshot 12:30:05 a@b #1 ~home Möwe 花 folder.v2 tmp part"""


def touch(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def listed(folder: Path) -> tuple[list[str], dict[str, str]]:
    """The images below a folder, and what is left out with the kind of its reason."""
    found = list(images_below(folder))
    images = [str(one.relative_to(folder)) for one in found if isinstance(one, Path)]
    left_out = [one for one in found if isinstance(one, LeftOut)]
    return images, {str(path.relative_to(folder)): reason.partition(": ")[0] for path, reason in left_out}


def test_names_that_systems_give_are_known_and_those_of_persons_are_not_taken_for_them() -> None:
    folders = [*FOLDERS_OF_SYSTEMS.split(), "System Volume Information", "Network Trash Folder"]
    assert [name for name in folders if system_kind(name, is_folder=True) is None] == []
    files = [*FILES_OF_SYSTEMS.split(), "Icon\r", "Unconfirmed 12.crdownload"]
    assert [name for name in files if system_kind(name, is_folder=False) is None] == []
    for name in OF_PERSONS.split():
        assert system_kind(name, is_folder=True) is None
        assert system_kind(f"{name}.jpg", is_folder=False) is None


def test_images_at_any_depth_in_the_order_of_their_paths(tmp_path: Path) -> None:
    touch(tmp_path, "b.JPG", "a/2.png", "a/1.webp", "a.jpg", "a/notes.txt", "0.jpg/deep/er/x.jpeg")  # 0.jpg: a folder
    images, left_out = listed(tmp_path)
    assert images == ["0.jpg/deep/er/x.jpeg", "a/1.webp", "a/2.png", "a.jpg", "b.JPG"]
    assert left_out == {"a/notes.txt": "not an image"}


def test_what_systems_made_is_not_looked_into_and_counted_by_kind(tmp_path: Path) -> None:
    touch(tmp_path, "a/0.jpg", "a/@eaDir/0.jpg/SYNOPHOTO_THUMB_M.jpg", "__MACOSX/a/._0.jpg", "a/._0.jpg", "a/Thumbs.db")
    assert listed(tmp_path) == (
        ["a/0.jpg"],
        {
            "__MACOSX": "made by a system",
            "a/._0.jpg": "hidden",
            "a/@eaDir": "made by a system",
            "a/Thumbs.db": "made by a system",
        },
    )
    assert [folder.name for folder in folders_in(tmp_path)] == ["a"]
    assert count_reasons(one.reason for one in images_below(tmp_path) if isinstance(one, LeftOut)) == {
        "made by a system": 3,
        "hidden": 1,
    }


def test_links_to_files_and_from_the_folder_itself_to_folders_are_followed(tmp_path: Path) -> None:
    touch(tmp_path / "store", "1.jpg", "2.jpg")
    photos = touch(tmp_path / "photos", "dog/0.jpg")
    (photos / "cat").symlink_to(tmp_path / "store")
    (photos / "dog" / "1.jpg").symlink_to(tmp_path / "store" / "1.jpg")
    (photos / "dog" / "loop").symlink_to(photos)
    (photos / "gone.jpg").symlink_to(tmp_path / "nowhere.jpg")
    (photos / "itself").symlink_to(photos / "itself")
    images, left_out = listed(photos)
    assert images == ["cat/1.jpg", "cat/2.jpg", "dog/0.jpg", "dog/1.jpg", "gone.jpg"]  # reading it says why not
    assert left_out == {"dog/loop": "link to a folder", "itself": "not an image"}
    assert [folder.name for folder in folders_in(photos)] == ["cat", "dog"]


def test_names_that_are_not_utf_8_are_left_out_and_can_be_printed(tmp_path: Path) -> None:
    touch(tmp_path, "a/0.jpg")
    for name in (b"a/\xfc.jpg", b"\xfc/0.jpg"):
        path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
        path.parent.mkdir(exist_ok=True)
        path.touch()
    images, left_out = listed(tmp_path)
    assert (images, left_out) == (["a/0.jpg"], {"a/\ufffd.jpg": "unreadable", "\ufffd": "unreadable"})
    assert [folder.name for folder in folders_in(tmp_path)] == ["a"]


def test_a_folder_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "a/0.jpg", "b/0.jpg")
    real = os.scandir

    def scandir(folder: Path) -> object:  # root may read everything
        if folder.name == "b":
            raise PermissionError(13, "Permission denied")
        return real(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    assert listed(tmp_path) == (["a/0.jpg"], {"b": "unreadable folder"})
    with pytest.raises(BadImageError, match="b: cannot be read: Permission denied; give your user access"):
        list(images_below(tmp_path / "b"))


def test_the_first_of_each_kind_are_named() -> None:
    left_out = [LeftOut(Path(f"{n}.txt"), "not an image: its name") for n in range(5)]
    assert left_out_lines([("b", "unreadable folder: Permission denied"), *left_out]) == [
        "left out: 5 not an image",
        "  0.txt: its name",
        "  1.txt: its name",
        "  2.txt: its name",
        "  and 2 more",
        "left out: 1 unreadable folder",
        "  b: Permission denied",
    ]
