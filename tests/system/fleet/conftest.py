"""What the agent's tests share: a repository with one good family, its canary, and a device that follows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from jetsel.fleet import publishing
from tests.system.daemons import Daemon, Start
from tests.system.fleet.site import Site, fleet_config, outcome, put_canary, put_pets, state
from tests.unit.fleet.published import pair


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A repository of one good family."""
    key = pair(tmp_path, "key")
    made = Site(tmp_path / "repository", key, tmp_path / "key.pub")
    publishing.init(made.storage, [key.private])
    made.publish(put_pets(tmp_path / "good", "small", "large"))
    return made


@pytest.fixture
def canary(tmp_path: Path, site: Site) -> Path:
    """Photographs as the large model sees them."""
    return put_canary(tmp_path / "canary", tmp_path / "good")


@pytest.fixture
def device(start: Start, site: Site, canary: Path, tmp_path: Path) -> Daemon:
    """A daemon whose device holds plan 1, the small model."""
    daemon = start(fleet_config(site, "one", canary), env=state(tmp_path))
    site.plan("one", 1, "small")
    assert outcome(daemon, tmp_path) == (1, "installed")
    return daemon
