"""`jetsel config` in process: what it prints is a jetsel.toml that means the same; and where one is read from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jetsel.base.camera_config import Camera
from jetsel.base.config import Config, parse
from jetsel.base.errors import ConfigError
from jetsel.cli.configuration import as_toml, explained
from jetsel.site import config_file


def test_every_key_is_explained_even_where_it_has_no_value() -> None:
    printed = as_toml(Config())
    for section in (name for name in Config.__struct_fields__ if name != "cameras"):
        kind = type(getattr(Config(), section))
        heading, meanings = explained(kind)
        assert f"# {heading}\n[{section}]\n" in printed
        assert tuple(meanings) == kind.__struct_fields__, "one line of the docstring for each, in their order"
        for key in meanings:
            assert re.search(rf"^# .*\n(# \w+\. Example: )?{key} = ", printed, re.MULTILINE), key


def test_cameras_are_explained_and_come_back_as_they_were() -> None:
    text = '[[cameras]]\nname = "a"\nsource = "0"\n[[cameras]]\nname = "b"\nsource = "1"\nregions = {l = "0,0,1,1"}'
    printed = as_toml(parse(text))
    assert parse(printed) == parse(text)
    _, meanings = explained(Camera)
    assert tuple(meanings) == Camera.__struct_fields__
    assert all(meaning in printed for meaning in meanings.values())


def test_the_default_and_the_range_are_told_beside_another_value() -> None:
    printed = as_toml(parse('[log]\nlevel = "error"\n[server]\nqueue_requests = 7\n[edge.models.xl]\nremote = "x"'))
    assert "(1 to 100,000; default 128).\nqueue_requests = 7\n" in printed
    assert '(debug, error, info, warning; default "info").\nlevel = "error"\n' in printed
    assert printed.index("[edge.models.xl]") > printed.index("mj_per_kb = "), "what follows a table belongs to it"


def test_the_file_given_is_read_before_the_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = tmp_path / "system.toml"
    monkeypatch.setattr(config_file, "SYSTEM_CONFIG", str(system))
    assert config_file.locate(None) is None
    assert config_file.read(None) == Config()
    system.write_text("")
    assert config_file.locate(None) == system
    assert config_file.locate(tmp_path / "own.toml") == tmp_path / "own.toml"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[server]\nworkes = 1", "server.workes"),
        (b"\xff", "not UTF-8"),
        ("[server]\nworkers = 1".encode("utf-16"), "UTF-16.*: save it as UTF-8"),
        pytest.param(
            b".".join([b"a"] * 20_000) + b" = 1",
            "not TOML|there is no such key|parts between dots",
            marks=pytest.mark.slow,
        ),
        (None, "write one"),
    ],
    ids=["no such key", "no text", "Notepad's Unicode", "too many dots", "no file"],
)
def test_a_file_that_cannot_be_used_is_named_in_one_line(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "jetsel.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=said) as raised:
        config_file.read(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert "\n" not in str(raised.value)


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "jetsel.toml"
    path.write_bytes("[server]\r\nworkers = 3\r\n".encode("utf-8-sig"))
    assert config_file.read(path).server.workers == 3


def test_the_environment_names_a_file_and_the_users_own_comes_before_the_systems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "config" / "jetsel" / "jetsel.toml"
    own.parent.mkdir(parents=True)
    own.write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("JETSEL_CONFIG", raising=False)
    assert config_file.locate(None) == own
    monkeypatch.setenv("JETSEL_CONFIG", str(tmp_path / "named.toml"))
    assert config_file.locate(None) == tmp_path / "named.toml"
    assert config_file.locate(own) == own
