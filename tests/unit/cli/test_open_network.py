"""`jetsel edge open-network`: the drop-in, below a prefix."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from jetsel.base.errors import ConfigError
from jetsel.cli.app import app
from jetsel.cli.edge.open_network import DROP_IN, addresses


def run(tmp_path: Path, *options: str, url: str | list[str] = "http://192.0.2.7:8000") -> str:
    config = tmp_path / "jetsel.toml"
    config.write_text(f"[edge]\nurl = {json.dumps(url)}\n")
    prefix = ("--prefix", str(tmp_path), "--config", str(config))
    ended = CliRunner().invoke(app, ["edge", "open-network", *prefix, *options])
    assert ended.exit_code == 0, ended.output
    return ended.output


def test_the_way_to_the_edge_alone_is_opened_and_closed_again(tmp_path: Path) -> None:
    path = tmp_path / DROP_IN.relative_to("/")
    assert f"write  {path}" in run(tmp_path, "--dry-run")
    assert not path.exists()
    assert "to run systemctl daemon-reload" in run(tmp_path)
    settings = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    assert settings == ["[Service]", "RestrictAddressFamilies=AF_INET AF_INET6", "IPAddressAllow=192.0.2.7"]
    run(tmp_path, "--remove")
    assert not path.exists()


def test_the_way_to_each_of_several_is_opened(tmp_path: Path) -> None:
    run(tmp_path, url=["http://192.0.2.7:8000", "https://[2001:db8::1]", "http://192.0.2.7:8001"])
    text = (tmp_path / DROP_IN.relative_to("/")).read_text()
    assert text.splitlines()[-1] == "IPAddressAllow=192.0.2.7 2001:db8::1"


def test_a_name_is_looked_up_and_one_that_means_nothing_is_refused() -> None:
    assert {"127.0.0.1", "::1"} & set(addresses("http://localhost:8000"))
    assert addresses("http://[2001:db8::1]:8000") == ["2001:db8::1"]
    with pytest.raises(ConfigError, match=r"edge\.url: .* has no address"):
        addresses("http://no-such-host.invalid:8000")
