"""The users that the tests are, and a daemon that one of them runs."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

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
