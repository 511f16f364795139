"""`jetsel repo` as processes: a family is published into a folder, listed, verified, damaged, and cleared up after."""

import json
from pathlib import Path

import pytest

from tests.system.command import jetsel
from tests.unit.daemon.families import put_family


@pytest.mark.slow
def test_a_family_is_published_verified_and_cleared_up_after(tmp_path: Path) -> None:
    models, url, key = tmp_path / "models", tmp_path / "repository", tmp_path / "key"
    models.mkdir()
    put_family(models, "pets", "small", "large")
    config = tmp_path / "jetsel.toml"
    config.write_text(f'[models]\npaths = ["{models}"]\nstarter = false\n')
    trust = ("--trust", f"{key}.pub")
    for command in (
        ("key", key),
        ("init", url, "--sign", key),
        ("publish", url, "--family", "pets", "--sign", key, "--config", config),
        ("verify", url, *trust),
    ):
        done = jetsel("repo", *command)
        assert (done.returncode, done.stderr) == (0, "")
    (bundle,) = json.loads(jetsel("repo", "list", url, *trust, "--json").stdout)["bundles"]
    assert [model["name"] for model in bundle["bundle"]["models"]] == ["small", "large"]
    assert "small, large" in jetsel("repo", "list", url, *trust).stdout
    again = jetsel("repo", "publish", url, "--family", "pets", "--sign", key, "--config", config)
    assert "nothing changed" in again.stdout
    blob = url / "blobs" / f"{bundle['bundle']['files'][0]['sha256']}.gz"
    blob.write_bytes(blob.read_bytes()[:-1] + b"x")
    damaged = jetsel("repo", "verify", url, *trust)
    assert damaged.returncode == 1
    assert "altered" in damaged.stderr
    (url / "blobs" / "left").write_bytes(b"12345")
    assert "removed 0 files" in jetsel("repo", "gc", url, *trust).stdout
    cleared = json.loads(jetsel("repo", "gc", url, *trust, "--younger-than-s", 0, "--json").stdout)
    assert cleared == {"removed": ["blobs/left"], "bytes": 5}
