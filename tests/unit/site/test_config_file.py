"""Which file the configuration is read from, and what is said of one that cannot be used."""

from pathlib import Path

import pytest

from jetsel.base.config import Config
from jetsel.base.errors import ConfigError
from jetsel.site import config_file


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
