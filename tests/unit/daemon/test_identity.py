"""Who may reload: root, the daemon's own user and the admin group."""

import grp
import os
import pwd
from pathlib import Path

import pytest

from jetsel.base.errors import ConfigError, NotAllowedError
from jetsel.daemon.identity import UserIdentity, check_admin, group_number

STRANGER_UID = STRANGER_GID = 4_000_000_000  # no user and no group has this number
OWN_GROUP = grp.getgrgid(os.getgid())


@pytest.mark.parametrize("group", [None, OWN_GROUP.gr_name])
def test_root_and_the_daemon_s_own_user_may(group: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    check_admin(UserIdentity(os.getuid(), STRANGER_GID), group)
    monkeypatch.setattr(os, "getuid", lambda: 1234)  # whoever runs the tests, root and the daemon's user are two
    for uid in (0, 1234):
        check_admin(UserIdentity(uid, STRANGER_GID), group)
    with pytest.raises(NotAllowedError):
        check_admin(UserIdentity(1235, STRANGER_GID), group)


def test_the_owner_of_the_agents_folder_may_once_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.setattr(os, "getuid", lambda: 1234)
    agent = UserIdentity(os.geteuid() or 1235, STRANGER_GID)
    with pytest.raises(NotAllowedError):
        check_admin(agent, None)
    (tmp_path / "state-agent").mkdir()
    if os.geteuid() == 0:
        os.chown(tmp_path / "state-agent", agent.uid, -1)
    check_admin(agent, None)


def test_anybody_else_may_not_and_is_told_who_may() -> None:
    with pytest.raises(NotAllowedError, match=f"user {STRANGER_UID} .*: be root, the daemon's own user$"):
        check_admin(UserIdentity(STRANGER_UID, OWN_GROUP.gr_gid), None)
    with pytest.raises(NotAllowedError, match=f"own user or a member of {OWN_GROUP.gr_name}$"):
        check_admin(UserIdentity(STRANGER_UID, STRANGER_GID), OWN_GROUP.gr_name)


def test_a_member_of_the_admin_group_may_from_the_moment_it_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    # The peer's credentials hold its first group alone; the others stand in the group file, which is root's to write.
    member = next(user for user in pwd.getpwall() if user.pw_uid not in (0, os.getuid()))
    candidate = UserIdentity(member.pw_uid, STRANGER_GID)
    others = [name for name in OWN_GROUP.gr_mem if name != member.pw_name]
    for members, may in ((others, False), ([*others, member.pw_name], True)):
        now = grp.struct_group((OWN_GROUP.gr_name, "x", OWN_GROUP.gr_gid, members))
        monkeypatch.setattr(grp, "getgrnam", lambda _, now=now: now)
        if may:
            check_admin(candidate, OWN_GROUP.gr_name)
        else:
            with pytest.raises(NotAllowedError):
                check_admin(candidate, OWN_GROUP.gr_name)


def test_a_group_that_is_not_there_admits_nobody_and_stops_the_start() -> None:
    with pytest.raises(NotAllowedError):
        check_admin(UserIdentity(STRANGER_UID, OWN_GROUP.gr_gid), "no-such-group")
    with pytest.raises(ConfigError, match=r"^server\.admin_group: there is no group 'no-such-group' here; example: "):
        group_number("admin_group", "no-such-group")
