"""The files of the service, filled in: what systemd/ holds, and where each goes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from jetsel.errors import ConfigError

_IN_WHEEL = Path(__file__).parents[2] / "systemd_units"
_IN_CHECKOUT = Path(__file__).parents[3] / "systemd"

SYSTEM_UNITS = Path("/etc/systemd/system")
USER_UNITS = Path(".config/systemd/user")  # below the home directory; systemd.unit(5)
PLACES = {
    "sysusers.d": Path("/etc/sysusers.d"),
    "tmpfiles.d": Path("/etc/tmpfiles.d"),
    "udev": Path("/etc/udev/rules.d"),
}
"""Where what is no unit goes, by its folder: the administrator's places of sysusers.d(5), tmpfiles.d(5), udev(7)."""

NEWER_THAN_237 = frozenset(
    {
        "OOMPolicy",  # 243
        "PrivateIPC",  # 248
        "PrivateMounts",  # 239
        "ProtectClock",  # 245
        "ProtectHostname",  # 242
        "ProtectKernelLogs",  # 244
        "ProtectProc",  # 247
        "RestrictSUIDSGID",  # 242
    }
)
"""Directives of the units that systemd 237 (Ubuntu 18.04) does not know: it logs a line for each, and goes on."""


@dataclass(frozen=True)
class File:
    """One file of the service: where it goes, and its text."""

    path: Path
    text: str


def folder() -> Path:
    """Return where the templates are: in the package as installed, else in the checkout."""
    return _IN_WHEEL if _IN_WHEEL.is_dir() else _IN_CHECKOUT


def render(text: str, executable: Path) -> str:
    """Return a template with the command's path in it. Raises ConfigError where a unit cannot hold that path."""
    if not re.fullmatch(r"/[\w./+:@~-]+", str(executable), re.ASCII):
        raise ConfigError(
            f"{executable}: systemd would take this path apart: install jetsel where the path has letters, digits and "
            "._+:@~- alone"
        )
    return text.replace("@EXECUTABLE@", str(executable))


def system_files(executable: Path) -> list[File]:
    """Return the files of the system's service."""
    units = [File(SYSTEM_UNITS / path.name, render(path.read_text(), executable)) for path in _units(folder())]
    others = [
        File(place / path.name, path.read_text())
        for name, place in PLACES.items()
        for path in sorted((folder() / name).iterdir())
    ]
    return units + others


def user_files(executable: Path, home: Path) -> list[File]:
    """Return the files of one user's service; home: that user's."""
    return [
        File(home / USER_UNITS / path.name, render(path.read_text(), executable)) for path in _units(folder() / "user")
    ]


def _units(place: Path) -> list[Path]:
    return sorted(path for path in place.iterdir() if path.suffix in (".service", ".socket", ".timer"))
