"""The files of the service, filled in: what systemd/ holds, and where each goes."""

from __future__ import annotations

import re
from pathlib import Path

from jetsel.errors import ConfigError

_IN_WHEEL = Path(__file__).parents[1] / "systemd_units"
TEMPLATES = _IN_WHEEL if _IN_WHEEL.is_dir() else Path(__file__).parents[2] / "systemd"

SYSTEM_UNITS = Path("/etc/systemd/system")
USER_UNITS = Path(".config/systemd/user")  # below the home directory; systemd.unit(5)
PLACES = {
    "sysusers.d": Path("/etc/sysusers.d"),
    "tmpfiles.d": Path("/etc/tmpfiles.d"),
    "udev": Path("/etc/udev/rules.d"),
    "grafana": Path("/usr/local/share/jetsel/grafana"),
}
"""Where what is no unit goes, by its folder: the administrator's places of sysusers.d(5), tmpfiles.d(5), udev(7)."""


def system_files(executable: Path) -> dict[Path, str]:
    """Return the text of each file of the system's service by its path; raises ConfigError as `units` does."""
    files = units(TEMPLATES, SYSTEM_UNITS, executable)
    for name, place in PLACES.items():
        files |= {place / path.name: path.read_text() for path in sorted((TEMPLATES / name).iterdir())}
    return files


def units(folder: Path, place: Path, executable: Path) -> dict[Path, str]:
    """Return the units of a folder with the command's path filled in, by the path that each is put at.

    Raises ConfigError where a unit cannot hold the command's path.
    """
    if not re.fullmatch(r"/[\w./+:@~-]+", str(executable), re.ASCII):
        raise ConfigError(
            f"{executable}: systemd would take this path apart: only letters, digits and ._+:@~- may be in it"
        )
    found = sorted(path for path in folder.iterdir() if path.suffix in (".service", ".socket", ".timer"))
    return {place / path.name: path.read_text().replace("@EXECUTABLE@", str(executable)) for path in found}
