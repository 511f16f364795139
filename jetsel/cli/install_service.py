"""`jetsel install-service`: install a systemd service for the machine or a user, and check that the daemon answers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from jetsel.base.errors import ConfigError, JetselError

ROOT = Path("/")
BOOTED = Path("/run/systemd/system")  # exists if systemd runs: sd_booted(3)
PACKAGED = Path("/lib/systemd/system/jetsel.service")  # installed by the Debian package
TIMERS = Path("/etc/systemd/system/timers.target.wants")
HIDDEN_FOLDERS = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")  # by ProtectHome= and PrivateTmp=, systemd.exec(5)
INSTALL_IN_OPT = "install it with pip into an environment under /opt, as docs/install.md shows"
OPTIONAL_UNITS = ("jetsel-gateway.service", "jetsel-watch.service", "jetsel-review.service")
"""Units that only the owner enables; an installation restarts those that run."""
STATUS_MS = 30_000.0  # a daemon that is loading models replies late


class ServiceError(JetselError):
    """The service could not be installed; the message names the step and the repair."""


def install_service(
    user: Annotated[bool, typer.Option("--user", help="Install for this user, without root.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be done, and change nothing.")] = False,
    prefix: Annotated[
        Path, typer.Option(metavar="ROOT", help="Write the files below this folder, and run nothing.")
    ] = ROOT,
    remove: Annotated[
        bool, typer.Option("--remove", help="Stop the service and remove its files; data is kept.")
    ] = False,
) -> None:
    """Install a systemd service that starts the daemon, keeps it running, and holds its socket during a restart.

    The command prints each file that it writes and each command that it runs. It can be run again at any time, and
    changes only what differs. A running daemon is restarted. The service's user must be able to read the installation,
    so do not install jetsel into a home directory. docs/install.md explains each setting.
    """
    command = Path(sysconfig.get_path("scripts")) / "jetsel"
    texts = units(TEMPLATES / "user", Path.home() / USER_UNITS, command) if user else system_files(command)
    files = {prefix.absolute() / path.relative_to("/"): text for path, text in texts.items()}
    is_image = prefix.absolute() != ROOT
    wrong = list(obstacles(command, user=user, remove=remove, is_image=is_image))
    for problem in wrong:
        typer.echo(f"{'warning' if is_image else 'stops'}  {problem}", err=True)
    if wrong and not (is_image or dry_run):
        raise ConfigError("nothing was changed: the lines above name the obstacles")
    runs = not (dry_run or is_image)
    if remove:
        _remove(files, user=user, runs=runs)
        return
    socket_changed = write_files(files, dry_run)
    run_commands(commands(user=user, socket_changed=socket_changed), runs)
    if runs:
        typer.echo(f"check  {daemon_headline(user=user)}")


def obstacles(command: Path, *, user: bool, remove: bool, is_image: bool) -> Iterator[str]:
    """Yield what prevents a change of the service, with the repair. is_image: the files are for a disk image."""
    if not is_image and not BOOTED.is_dir():
        yield f"systemd is not running here ({BOOTED} is missing): start `jetsel serve` yourself, or use --prefix"
    if not is_image and not user and os.geteuid() != 0:
        yield "only root may change the system's service: run it with sudo, or use --user for your own service"
    if not is_image and not user and PACKAGED.exists():
        yield f"the Debian package has installed {PACKAGED}: change it with `systemctl edit jetsel.service`"
    if not user and not remove:
        yield from unreadable_paths(command)


def unreadable_paths(command: Path) -> Iterator[str]:
    """Yield the paths of this installation that the service cannot read."""
    for path in dict.fromkeys((command, Path(sys.prefix), Path(sys.executable).resolve(), Path(__file__))):
        if folder := next((folder for folder in HIDDEN_FOLDERS if path.is_relative_to(folder)), None):
            yield f"{path}: the service cannot read {folder}: {INSTALL_IN_OPT}"


def commands(*, user: bool, socket_changed: bool) -> list[str]:
    """Return the shell commands to run after the files are written; - before one means that it may fail.

    The service is restarted, not only reloaded, because systemd 237 kills a running service that gains a watchdog
    (systemd issue 9467). The socket keeps running and holds requests meanwhile, unless its own unit has changed.
    """
    systemctl = "systemctl --user" if user else "systemctl"
    prepared = ["systemd-sysusers jetsel.conf", "systemd-tmpfiles --create jetsel.conf"]
    prepared += ["-udevadm control --reload", "-udevadm trigger --subsystem-match=powercap"]  # a container has no udev
    stopped = [f"{systemctl} stop jetsel.socket jetsel.service"] if socket_changed else []
    return [
        *([] if user else prepared),
        f"{systemctl} daemon-reload",
        f"{systemctl} enable jetsel.socket jetsel.service",
        *stopped,
        f"-{systemctl} reset-failed jetsel.socket jetsel.service",  # the service may have reached its start limit
        f"{systemctl} start jetsel.socket",
        f"{systemctl} restart jetsel.service",
        *([] if user else [f"-{systemctl} try-restart {unit}" for unit in OPTIONAL_UNITS]),
    ]


def daemon_headline(*, user: bool) -> str:
    """Return the first line of the new daemon's status; raises JetselError if it does not reply."""
    from jetsel.base.endpoint import SYSTEM_SOCKET, user_socket
    from jetsel.cli.status_text import headline
    from jetsel.client import Client

    with Client(f"ipc://{user_socket() if user else SYSTEM_SOCKET}", timeout_ms=STATUS_MS) as client:
        return headline(client.status())


def write_files(files: dict[Path, str], dry_run: bool) -> bool:
    """Write the files that differ, or with dry_run only print them; return whether an existing socket unit differs."""
    from jetsel.base.files import replace

    old_texts = {path: path.read_text(errors="replace") if path.exists() else None for path in files}
    for path, text in files.items():
        typer.echo(f"{'keep  ' if old_texts[path] == text else 'write '} {path}")
        if path.is_symlink():
            raise ConfigError(f"{path} is a symbolic link (systemctl mask makes one): remove it first")
        if old_texts[path] != text and not dry_run:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace(path, text.encode())
    return any(path.suffix == ".socket" and old_texts[path] not in (None, text) for path, text in files.items())


def _remove(files: Iterable[Path], *, user: bool, runs: bool) -> None:
    """Stop the units and remove the files; with runs=False only print that."""
    systemctl = "systemctl --user" if user else "systemctl"
    optional_units = [] if user else [*OPTIONAL_UNITS, *(timer.name for timer in TIMERS.glob("jetsel-*.timer"))]
    names = " ".join(["jetsel.socket", "jetsel.service", *optional_units])
    run_commands([f"-{systemctl} disable --now {names}"], runs)
    for path in files:
        typer.echo(f"remove {path}")
        if runs:
            path.unlink(missing_ok=True)
    run_commands([f"{systemctl} daemon-reload"], runs)


def run_commands(commands: list[str], runs: bool) -> None:
    """Print each command and, if `runs`, run it in a shell; raises ServiceError if one without - fails."""
    for line in commands:
        command = line.removeprefix("-")
        typer.echo(f"{'run   ' if runs else 'to run'} {command}")
        if not runs:
            continue
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
        output = " ".join(f"{done.stderr} {done.stdout}".split())
        if done.returncode != 0 and command == line:
            raise ServiceError(f"`{command}` failed: {output}; see why: journalctl -u jetsel -n 50")
        if done.returncode != 0:
            typer.echo(f"       this failed, which may be harmless: {output}")


_WHEEL_TEMPLATES = Path(__file__).parents[1] / "systemd_units"
TEMPLATES = _WHEEL_TEMPLATES if _WHEEL_TEMPLATES.is_dir() else Path(__file__).parents[2] / "systemd"

SYSTEM_UNITS = Path("/etc/systemd/system")
USER_UNITS = Path(".config/systemd/user")  # below the home directory; systemd.unit(5)
OTHER_FOLDERS = {
    "sysusers.d": Path("/etc/sysusers.d"),
    "tmpfiles.d": Path("/etc/tmpfiles.d"),
    "udev": Path("/etc/udev/rules.d"),
    "grafana": Path("/usr/local/share/jetsel/grafana"),
}
"""Subfolder of TEMPLATES -> where its files are installed: see sysusers.d(5), tmpfiles.d(5) and udev(7)."""


def system_files(executable: Path) -> dict[Path, str]:
    """Return the text of each file of the machine's service, by its target path; raises ConfigError as `units` does."""
    files = units(TEMPLATES, SYSTEM_UNITS, executable)
    for name, target in OTHER_FOLDERS.items():
        files |= {target / path.name: path.read_text() for path in sorted((TEMPLATES / name).iterdir())}
    return files


def units(folder: Path, target: Path, executable: Path) -> dict[Path, str]:
    """Return the text of each unit in a folder of templates, by its target path; executable: the command's path.

    target: folder for the units. Raises ConfigError if a unit cannot contain the command's path.
    """
    if not re.fullmatch(r"/[\w./+:@~-]+", str(executable), re.ASCII):
        raise ConfigError(f"{executable}: systemd would split this path: use only letters, digits and ._+:@~- in it")
    unit_files = sorted(path for path in folder.iterdir() if path.suffix in (".service", ".socket", ".timer"))
    return {target / path.name: path.read_text().replace("@EXECUTABLE@", str(executable)) for path in unit_files}
