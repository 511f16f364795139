"""A camera's gate is written into the configuration, and nothing else in the file changes."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from jetsel.base.errors import ConfigError
from jetsel.gateway.cameras.camera_file import rewrite, with_gate

TEXT = '''# the house
[server]
workers = 2

[[cameras]]  # by the door
name = "door"   # as on the page
source = "rtsp://me:secret@10.0.0.7/1"
note = """
[[cameras]]
name = "yard"
"""

[[cameras]]
gate = 'blocks:6'  # too many leaves
"name" = "yard"

[cameras.mqtt]
name = "topic"
'''


def test_a_line_is_added_below_the_name() -> None:
    added = TEXT.replace("as on the page\n", 'as on the page\ngate = "edges:9.5"\n')
    assert with_gate(TEXT, "door", "edges:9.5") == added
    assert with_gate(added, "door", "none") == added.replace("edges:9.5", "none")


def test_a_line_is_replaced_and_its_comment_stays() -> None:
    assert with_gate(TEXT, "yard", "histogram:4") == TEXT.replace("'blocks:6'", '"histogram:4"')


def test_windows_lines_an_indent_and_a_file_without_a_last_newline_stay() -> None:
    assert with_gate('[[cameras]]\r\n  name="a"', "a", "none") == '[[cameras]]\r\n  name="a"\n  gate = "none"\n'
    text = '[[cameras]]\r\n  name="a"\r\n  every = 2\r\n'
    assert with_gate(text, "a", "none") == text.replace('"a"\r\n', '"a"\r\n  gate = "none"\r\n')


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TEXT, "did you mean door"),
        ("[server]\n", "the file has none"),
        ('[[cameras]]\nname = "dor"\n[[cameras]]\nname = "dor"\n', "2 of the"),
        ('cameras = [{name = "dor"}]\n', 'write gate = "blocks:7"'),
        ('[[cameras]]\nname = "dor"\ngate = """blocks:6"""\n', 'write gate = "blocks:7"'),
        ("[[cameras]\n", "not TOML"),
    ],
)
def test_what_cannot_be_edited_is_named_with_the_repair(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as raised:
        with_gate(text, "dor", "blocks:7")
    assert words in str(raised.value)


def test_only_the_gate_changes() -> None:
    before, after = msgspec.toml.decode(TEXT), msgspec.toml.decode(with_gate(TEXT, "yard", "edges:3"))
    before["cameras"][1]["gate"] = "edges:3"
    assert after == before


def test_a_rewritten_file_keeps_its_mode_and_its_link(tmp_path: Path) -> None:
    path, link = tmp_path / "jetsel.toml", tmp_path / "link.toml"
    path.write_text(TEXT)
    path.chmod(0o600)
    link.symlink_to(path)
    rewrite(link, "workers = 1\r\n")
    assert path.read_bytes() == b"workers = 1\r\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert link.is_symlink()
    assert {one.name for one in tmp_path.iterdir()} == {"jetsel.toml", "link.toml"}
