"""What the repository's tests share: a pair of keys, and a repository of one family in a folder."""

from pathlib import Path

import pytest

from jetsel.addons.fleet import publishing
from jetsel.addons.fleet.storage import Storage
from tests.unit.addons.fleet.published import Pair, family_folder, pair, publish


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return pair(tmp_path_factory.mktemp("keys"), "key")


@pytest.fixture
def repository(key: Pair, tmp_path: Path) -> Path:
    """A repository of one family, whose models lie in `models` beside it."""
    storage = Storage(str(tmp_path / "repository"))
    publishing.init(storage, [key.private])
    publish(storage, family_folder(tmp_path / "models", "small", "large"), key)
    return tmp_path / "repository"
