"""The users that the tests are, and a folder and a daemon of one of them."""

import os
import pwd
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.system.daemons import Daemon, serving

OWNER, GUEST, ADMIN_GROUP = "daemon", "nobody", "adm"


def become(user: str, group: str, *more_groups: str) -> list[str]:
    """The command that runs another as this user, who may read every file: the interpreter may lie in root's home."""
    groups = ["--groups", ",".join(more_groups)] if more_groups else ["--clear-groups"]
    reading = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    return ["setpriv", "--reuid", user, "--regid", group, *groups, *reading]


def owners_daemon(place: Path, settings: str = "") -> AbstractContextManager[Daemon]:
    """A daemon of the user OWNER, whose socket the users' common group may use."""
    return serving(place, f'[server]\ngroup = "{ADMIN_GROUP}"\n{settings}', prefix=become(OWNER, OWNER, ADMIN_GROUP))


@pytest.fixture
def place() -> Iterator[Path]:
    """One that the daemon's user owns and others may enter; pytest's own is closed to them."""
    with TemporaryDirectory(prefix="jetsel-test-") as folder:
        os.chmod(folder, 0o755)  # noqa: PTH101
        os.chown(folder, pwd.getpwnam(OWNER).pw_uid, pwd.getpwnam(OWNER).pw_gid)
        yield Path(folder)
