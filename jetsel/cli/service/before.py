"""What must hold before the service is installed: systemd, root, a program its user can reach, a configuration."""

from __future__ import annotations

import os
import stat
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from jetsel.config import SYSTEM_CONFIG
from jetsel.endpoint import SYSTEM_SOCKET
from jetsel.errors import ConfigError

BOOTED = Path("/run/systemd/system")  # sd_booted(3)
HIDDEN = ("/home", "/root", "/run/user")  # by ProtectHome=yes, see systemd.exec(5)
PRIVATE = ("/tmp", "/var/tmp")  # by PrivateTmp=yes
PACKAGED = (Path("/lib/systemd/system/jetsel.service"), Path("/usr/lib/systemd/system/jetsel.service"))
INTO_OPT = (
    "install jetsel under /opt: sudo python3 -m venv /opt/jetsel/venv, sudo /opt/jetsel/venv/bin/pip install JETSEL, "
    "sudo /opt/jetsel/venv/bin/jetsel install-service"
)
"""What helps against all that `unreachable` yields."""


def executable() -> Path:
    """Return the `jetsel` command of this installation; raises ConfigError where it has none."""
    command = Path(sysconfig.get_path("scripts")) / "jetsel"
    if not os.access(command, os.X_OK):
        raise ConfigError(f"there is no {command} that can be run: install jetsel with pip, not by copying its folder")
    return command


def problems(command: Path, *, user: bool, needs_root: bool) -> Iterator[str]:
    """Yield each thing that is in the way, with what helps."""
    if not BOOTED.is_dir():
        yield (
            "systemd does not run this machine (there is no /run/systemd/system): in a container run `jetsel serve` "
            "itself; for the image of another machine give --prefix"
        )
    if user:
        if not os.environ.get("XDG_RUNTIME_DIR"):
            yield "$XDG_RUNTIME_DIR is not set: log in as this user, by ssh or at the console, not by su or sudo"
        return
    if needs_root and os.geteuid() != 0:
        yield f"only root may install the system's service: sudo {command} install-service; or for you alone: --user"
    packaged = next((path for path in PACKAGED if path.exists()), None)
    if packaged is not None:
        yield f"the Debian package has installed {packaged}: change it with `systemctl edit jetsel.service`"
    closed = list(unreachable(command))
    yield from closed
    if closed:
        yield INTO_OPT
    yield from _configuration(Path(SYSTEM_CONFIG))


def unreachable(command: Path, parts: tuple[Path, ...] | None = None) -> Iterator[str]:
    """Yield what of the installation the user `jetsel` cannot reach inside the sandbox; parts: of another one."""
    if parts is None:
        package = Path(__file__).parents[2]  # not in the environment, where it is installed as a checkout
        parts = (Path(sys.prefix), Path(sys.executable).resolve(), Path(sys.base_prefix), package)
    told: set[Path] = set()
    for path in (command, command.resolve(), *parts):
        hidden = next((Path(place) for place in (*HIDDEN, *PRIVATE) if path.is_relative_to(place)), None)
        place = hidden or closed_on_the_way(path)
        if place is None or place in told:
            continue
        told.add(place)
        why = "which the service does not see" if hidden else "which lets only its owner in"
        yield f"{path} lies in {place}, {why}"


def closed_on_the_way(path: Path) -> Path | None:
    """Return the first folder on the way that others may not go through, or the file that they may not read."""
    for step in (*reversed(path.parents), path):
        try:
            mode = step.stat().st_mode
        except OSError:
            return step
        if not mode & (stat.S_IXOTH if stat.S_ISDIR(mode) else stat.S_IROTH):
            return step
    return None


def _configuration(path: Path) -> Iterator[str]:
    from jetsel.cli import settings

    if not path.exists():
        return
    try:
        endpoint = settings.read(path).server.endpoint
    except ConfigError as fault:
        yield str(fault)
        return
    if endpoint not in (None, f"ipc://{SYSTEM_SOCKET}"):
        yield (
            f"{path}: server.endpoint is {endpoint}, and jetsel.socket listens at {SYSTEM_SOCKET}: leave the key out; "
            "to have another path, set ListenStream= too: systemctl edit jetsel.socket"
        )
