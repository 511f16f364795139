"""Which file is read for a configuration, and why one is refused before it is parsed."""

from __future__ import annotations

from pathlib import Path

import pytest

from jetsel.cli.settings import MAX_BYTES, read
from jetsel.config import Config
from jetsel.errors import ConfigError


def test_no_file_is_the_defaults() -> None:
    assert read(None) == Config()


def test_a_file_larger_than_any_configuration_is_not_parsed(tmp_path: Path) -> None:
    path = tmp_path / "jetsel.toml"
    path.write_text("# " + "x" * (MAX_BYTES - 3) + "\n")
    assert read(path) == Config()
    with path.open("r+b") as file:
        file.truncate(1 << 40)
    with pytest.raises(ConfigError, match=rf"jetsel\.toml: larger than the {MAX_BYTES} bytes"):
        read(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff", "not UTF-8 text at byte 0"),
        (b"a = " + b"[" * 100_000, "not TOML"),
        (b"a = " + b"{b=" * 100_000, "not TOML"),
        (b"a = " + b"9" * 10_000, "not TOML|there is no such key|parts between dots"),
        (b".".join([b"a"] * 20_000) + b" = 1", "not TOML|there is no such key|parts between dots"),
    ],
)
def test_what_is_no_configuration_is_refused_in_one_line(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "jetsel.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=said) as refused:
        read(path)
    assert "\n" not in str(refused.value)
