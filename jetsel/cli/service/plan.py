"""What installing or removing the service comes to: files and commands, in order, made before any of it is done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jetsel.cli.service.units import PLACES, File

SOCKET = "jetsel.socket"
SERVICE = "jetsel.service"
UNITS = (SOCKET, SERVICE)


@dataclass(frozen=True)
class Write:
    """A file is written, whole or not at all. why: "new" or "changed"."""

    file: File
    why: str


@dataclass(frozen=True)
class Keep:
    """A file is there already, just so."""

    path: Path


@dataclass(frozen=True)
class Remove:
    """A file is removed."""

    path: Path


@dataclass(frozen=True)
class Run:
    """A command is run. must: installing ends where it fails."""

    command: tuple[str, ...]
    must: bool = True


Step = Write | Keep | Remove | Run


def placed(files: Sequence[File], prefix: Path) -> Iterator[Step]:
    """Yield what putting the files in place takes, given what is there; prefix: the root of the system."""
    for file in files:
        target = prefix / file.path.relative_to("/")
        there = _read(target)
        if there == file.text:
            yield Keep(target)
        else:
            yield Write(File(target, file.text), "new" if there is None else "changed")


def started(steps: Sequence[Step], *, user: bool, has_udev: bool) -> Iterator[Run]:
    """Yield the commands after the files are in place.

    The service is started again, not only reloaded: systemd 237 kills a running one that gains a watchdog (systemd
    issue 9467). The socket is left alone, and keeps what clients ask for meanwhile, unless its own unit has changed.
    """
    systemctl = ("systemctl", "--user") if user else ("systemctl",)
    if not user:
        yield Run(("systemd-sysusers", str(PLACES["sysusers.d"] / "jetsel.conf")))
        yield Run(("systemd-tmpfiles", "--create", str(PLACES["tmpfiles.d"] / "jetsel.conf")))
        if has_udev:
            yield Run(("udevadm", "control", "--reload"), must=False)
            yield Run(("udevadm", "trigger", "--subsystem-match=powercap"), must=False)
    yield Run((*systemctl, "daemon-reload"))
    yield Run((*systemctl, "enable", *UNITS))
    if any(isinstance(step, Write) and step.file.path.name == SOCKET and step.why == "changed" for step in steps):
        yield Run((*systemctl, "stop", *UNITS))
    if not all(isinstance(step, Write) and step.why == "new" for step in steps):
        yield Run((*systemctl, "reset-failed", *UNITS), must=False)  # it may be down for its start limit
    yield Run((*systemctl, "start", SOCKET))
    yield Run((*systemctl, "restart", SERVICE))


def removed(files: Sequence[File], timers: Sequence[str], *, user: bool, has_udev: bool) -> Iterator[Step]:
    """Yield what taking the service away takes; timers: those of jetsel-calibrate@ that are enabled."""
    systemctl = ("systemctl", "--user") if user else ("systemctl",)
    there = [file.path for file in files if file.path.exists()]
    units = [name for name in UNITS if any(path.name == name for path in there)]
    if units or timers:
        yield Run((*systemctl, "disable", "--now", *units, *timers), must=False)
    for path in there:
        yield Remove(path)
    yield Run((*systemctl, "daemon-reload"))
    if has_udev and not user:
        yield Run(("udevadm", "control", "--reload"), must=False)


def told(step: Step) -> str:
    """Return a step as one line."""
    if isinstance(step, Write):
        return f"write  {step.file.path} ({step.why})"
    if isinstance(step, Keep):
        return f"keep   {step.path} (as it should be)"
    if isinstance(step, Remove):
        return f"remove {step.path}"
    return f"run    {' '.join(step.command)}"


def _read(path: Path) -> str | None:
    """The file's text, None where there is none; what is no text is some other file's."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
