"""How a name that a person gives becomes an identity; the values are worked out by hand."""

import hashlib
import unicodedata
from pathlib import Path

import pytest

from jetsel.base.names import NumberByName, exact, folded, folder_name, is_plain, path_text, plain_name


def digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:8]


def nfd(name: str) -> str:
    return unicodedata.normalize("NFD", name)


def test_a_plain_name_is_what_file_names_settings_and_urls_can_hold() -> None:
    assert all(map(is_plain, ["a", "0", "my-model_v2.1", "a.", "a" * 64]))
    refused = ["", ".", "..", "../x", "a/b", "-a", "_a", "A", "My Flowers", "日本", "a\n", "é", "a" * 65]
    assert not any(map(is_plain, refused))


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("My Model v2.1", "my-model-v2.1"),
        ("Straße in Köln", "strasse-in-koln"),
        (nfd("Köln"), "koln"),
        ("İstanbul ①", "istanbul-1"),
        ("../x", "x"),
        ("日本", None),
        ("ライン B", None),
        ("a" * 63 + " b", "a" * 63 + "-"),
    ],
)
def test_a_plain_name_is_made_of_other_text_and_is_never_empty(text: str, made: str | None) -> None:
    assert plain_name(text) == made
    assert made is None or is_plain(made)


def test_names_are_the_same_in_both_forms_of_unicode_and_by_case_only_if_nothing_else_fits() -> None:
    assert exact(nfd(" Schröder ")) == "Schröder"
    assert folded("Hot_Dog ") == folded(nfd("hot dog")) == "hot dog"
    numbers = NumberByName(
        [("Cat", 0), ("cat", 1), ("a b", 2), ("a_b", 3), ("Schröder", 4), ("crane", 5), ("crane", 6)]
    )
    expected = {"Cat": 0, "cat": 1, "CAT": None, "a b": 2, "a_b": 3, "A b": None, nfd("Schröder"): 4, "SCHRÖDER": 4}
    assert {name: numbers.get(name) for name in expected} == expected
    assert numbers.get("crane") is None, "it means two"
    assert numbers.get("") is None
    assert NumberByName([("Hot dog", 0), ("hotdog", 0)]).get("hot_DOG") == 0


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("red, small", "red, small"),
        (nfd("Tür"), "Tür"),
        ("a/b", f"a_b-{digest('a/b')}"),
        ("..", f"_..-{digest('..')}"),
        (".x", f"_.x-{digest('.x')}"),
        (" ", f"_-{digest('')}"),
        ("前" * 100, f"{'前' * 82}-{digest('前' * 100)}"),  # 246 bytes, a dash and 8 digits: 255
        (nfd("é/é"), f"é_é-{digest('é/é')}"),
    ],
)
def test_two_names_never_share_a_folder(name: str, folder: str) -> None:
    assert folder_name(name) == folder
    assert len(folder.encode()) <= 255


def test_a_path_that_is_not_utf_8_can_be_written_down() -> None:
    assert path_text(Path("/a/ü")) == "/a/ü"
    assert path_text(Path("/a/\udcfc")) == r"/a/\xfc"
