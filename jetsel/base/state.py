"""Where what the daemon keeps between two runs lies: calibrations, models, engines, what was measured of power."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

SYSTEM_STATE = "/var/lib/jetsel"  # made by the service manager (StateDirectory=jetsel) or by the first root


def state_folder(name: str, environment: Mapping[str, str] | None = None) -> Path:
    """Return where the owner's files of one kind lie, by the rule that the daemon and the command line share.

    One place for the whole machine, the folder in $STATE_DIRECTORY (which systemd sets) or /var/lib/jetsel, for root
    and wherever /var/lib/jetsel exists, so that what a person installs is what the service reads; a person who may not
    write there gets an error and is never sent elsewhere. On a machine without it, $XDG_DATA_HOME/jetsel
    (~/.local/share) of the user who runs the command.
    """
    environment = os.environ if environment is None else environment
    state = environment.get("STATE_DIRECTORY", "").split(":")[0]  # systemd separates several by colons
    if state or os.geteuid() == 0 or _stands(SYSTEM_STATE):
        return Path(state or SYSTEM_STATE, name)
    data = environment.get("XDG_DATA_HOME", "")
    if data.startswith("/"):  # the specification has relative ones ignored
        return Path(data, "jetsel", name)
    home = environment.get("HOME", "")
    return Path(f"{home}/.local/share/jetsel" if home.startswith("/") else SYSTEM_STATE, name)


def agent_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Return the folder of what `jetsel agent` keeps and installs: beside the state folder, /var/lib/jetsel-agent.

    Not inside: the agent has a user of its own, and neither it nor the daemon may write the other's folder.
    """
    state = state_folder("", environment)
    return state.with_name(f"{state.name}-agent")


def _stands(path: str) -> bool:
    """Whether something is there, a link that this user may not follow included (systemd's DynamicUser makes one)."""
    try:
        Path(path).lstat()
    except OSError:
        return False
    return True
