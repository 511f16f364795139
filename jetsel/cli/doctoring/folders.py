"""The folders that jetsel writes to: whether this user may, tried by writing."""

from __future__ import annotations

import os
import pwd
import tempfile
from collections.abc import Iterator
from pathlib import Path

from jetsel.cli.doctoring.finding import Finding, State, Subject
from jetsel.config import calibrations_folder, engines_folder
from jetsel.state import state_folder

TRIED_BYTES = 4096  # one block: a full disk refuses it


def folders(subject: Subject) -> Iterator[Finding]:
    """Write to each folder, or to the one that it would be made in; nothing is left there."""
    config = subject.config
    yield _tried("state", state_folder(""), "failed")
    yield _tried("engines", engines_folder(config.host), "failed" if "tensorrt" in subject.used else "warning")
    yield _tried("calibrations", calibrations_folder(config.models), "warning")


def _tried(name: str, folder: Path, otherwise: State) -> Finding:
    place = folder
    while not os.path.lexists(place):
        place = place.parent
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(bytes(TRIED_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return _refused(name, folder, place, error, otherwise)
    made = "" if place == folder else f", to be made in {place}"
    return Finding(name, "ok", f"{folder}{made}: {_user(os.geteuid())} may write there")


def _refused(name: str, folder: Path, place: Path, error: OSError, otherwise: State) -> Finding:
    said = f"{folder}: {_user(os.geteuid())} cannot write to {place}: {error.strerror}"
    owner = place.lstat().st_uid
    if isinstance(error, PermissionError) and owner != os.geteuid():
        # Another user's folder is as it should be where that user runs the daemon.
        return Finding(name, "warning", said, f"ask as its owner: sudo -u {_user(owner)} jetsel doctor")
    return Finding(name, otherwise, said, "make room or have it writable, or name another folder in jetsel.toml")


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:  # a user of a container, or of systemd's
        return f"#{number}"
