"""Finds the folders of data that outlives the daemon: calibrations, models, engines, power measurements."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

SYSTEM_STATE = "/var/lib/jetsel"  # made by the service manager (StateDirectory=jetsel) or by the first root


def state_folder(name: str, environment: Mapping[str, str] | None = None) -> Path:
    """Return the folder for one kind of the owner's files, such as "models". The daemon and all commands use this rule.

    environment: None for os.environ. $STATE_DIRECTORY, which systemd sets, comes first. Root, and every user of a
    machine that has /var/lib/jetsel, gets that folder, so that the service reads what users install; writing there may
    fail, and no other folder is tried. Other users get $XDG_DATA_HOME/jetsel, usually ~/.local/share/jetsel.
    """
    environment = os.environ if environment is None else environment
    state = environment.get("STATE_DIRECTORY", "").split(":")[0]  # systemd separates several folders by colons
    if state or os.geteuid() == 0 or os.path.lexists(SYSTEM_STATE):  # a link counts: systemd's DynamicUser makes one
        return Path(state or SYSTEM_STATE, name)
    data = environment.get("XDG_DATA_HOME", "")
    if data.startswith("/"):  # the specification says to ignore relative paths
        return Path(data, "jetsel", name)
    home = environment.get("HOME", "")
    return Path(f"{home}/.local/share/jetsel" if home.startswith("/") else SYSTEM_STATE, name)


def agent_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Return the data folder of `jetsel agent`, which installs models for a fleet: usually /var/lib/jetsel-agent.

    It lies beside the daemon's folder because the two have different users and may not write into each other's folder.
    """
    state = state_folder("", environment)
    return state.with_name(f"{state.name}-agent")
