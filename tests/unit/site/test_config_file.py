"""Which address a command asks: --endpoint before --config before the variable."""

from __future__ import annotations

from pathlib import Path

import pytest

from jetsel.site.config_file import endpoint_of


def test_the_address_is_the_one_given_or_the_configurations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JETSEL_ENDPOINT", raising=False)
    config = tmp_path / "jetsel.toml"
    config.write_text('[server]\nendpoint = "ipc:///run/own.sock"\n')
    assert endpoint_of("ipc:///given.sock", config) == "ipc:///given.sock"
    assert endpoint_of(None, config) == "ipc:///run/own.sock"
    assert endpoint_of(None, None) is None
    monkeypatch.setenv("JETSEL_ENDPOINT", "ipc:///variable.sock")
    assert endpoint_of(None, config) == "ipc:///run/own.sock"
