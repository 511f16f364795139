"""Finds the folders of data that outlives the daemon: calibrations, models, engines, power measurements."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

SYSTEM_STATE = "/var/lib/jetsel"  # made by the service manager (StateDirectory=jetsel) or by the first root


def state_folder(name: str, environment: Mapping[str, str] | None = None) -> Path:
    """Return the folder for the owner's files of one kind, by one rule for the daemon and the command line.

    It is $STATE_DIRECTORY (set by systemd) or /var/lib/jetsel, for root and on every machine that has /var/lib/jetsel:
    the service then reads what users install. A user without write access gets an error, not another folder. On other
    machines it is $XDG_DATA_HOME/jetsel (~/.local/share) of the user.
    """
    environment = os.environ if environment is None else environment
    state = environment.get("STATE_DIRECTORY", "").split(":")[0]  # systemd separates several folders by colons
    if state or os.geteuid() == 0 or _exists(SYSTEM_STATE):
        return Path(state or SYSTEM_STATE, name)
    data = environment.get("XDG_DATA_HOME", "")
    if data.startswith("/"):  # the specification says to ignore relative paths
        return Path(data, "jetsel", name)
    home = environment.get("HOME", "")
    return Path(f"{home}/.local/share/jetsel" if home.startswith("/") else SYSTEM_STATE, name)


def agent_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Return the folder of `jetsel agent`: beside the state folder, /var/lib/jetsel-agent.

    The agent has a user of its own; neither it nor the daemon may write into the other's folder.
    """
    state = state_folder("", environment)
    return state.with_name(f"{state.name}-agent")


def _exists(path: str) -> bool:
    """Return whether the path exists; a link that this user cannot follow counts (systemd's DynamicUser makes one)."""
    try:
        Path(path).lstat()
    except OSError:
        return False
    return True
