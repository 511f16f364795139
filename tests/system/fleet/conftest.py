"""What the agent's tests share: a repository with one good family, its canary, and a device that follows it."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from jetsel.addons.fleet import publishing
from tests.system.daemons import Daemon, Start, serving
from tests.system.fleet.site import Site, fleet_config, outcome, put_canary, put_pets, state
from tests.unit.addons.fleet.published import pair


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A repository of one good family, which tests copy."""
    folder = tmp_path_factory.mktemp("published")
    key = pair(folder, "key")
    made = Site(folder / "repository", key, folder / "key.pub")
    publishing.init(made.storage, [key.private])
    made.publish(put_pets(folder / "good", "small", "large"))
    put_canary(folder / "canary", folder / "good")
    return made


@pytest.fixture(scope="session")
def installed_once(published: Site, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The agent's folder of a device that holds plan 1, which tests copy."""
    folder, site = tmp_path_factory.mktemp("device"), replace(published, url=tmp_path_factory.mktemp("plan") / "1")
    shutil.copytree(published.url, site.url)
    with serving(folder, fleet_config(site, "one", site.public.parent / "canary"), env=state(folder)) as daemon:
        site.plan("one", 1, "small")
        assert outcome(daemon, folder) == (1, "installed")
    return folder / "state-agent"


@pytest.fixture
def site(published: Site, tmp_path: Path) -> Site:
    """A repository of one good family."""
    for name in ("repository", "good"):
        shutil.copytree(published.public.parent / name, tmp_path / name)
    for name in ("key", "key.pub"):
        shutil.copy(published.public.parent / name, tmp_path)
    return replace(published, url=tmp_path / "repository", public=tmp_path / "key.pub")


@pytest.fixture
def canary(published: Site, tmp_path: Path) -> Path:
    """Images as the large model sees them."""
    shutil.copytree(published.public.parent / "canary", tmp_path / "canary")
    return tmp_path / "canary"


@pytest.fixture
def device(start: Start, site: Site, canary: Path, installed_once: Path, tmp_path: Path) -> Daemon:
    """A daemon whose device holds plan 1, the small model."""
    shutil.copytree(installed_once, tmp_path / "state-agent", symlinks=True)
    site.plan("one", 1, "small")
    return start(fleet_config(site, "one", canary), env=state(tmp_path))
