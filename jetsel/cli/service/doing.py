"""Carries out what was planned, and says each step as it is done."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jetsel.cli.service.plan import Remove, Run, Step, Write, told
from jetsel.errors import ConfigError, JetselError

COMMAND_S = 300.0  # a start may take TimeoutStartSec, and is given more while models load
MODE = 0o644  # whoever may read unit files may read these


class ServiceError(JetselError):
    """The service could not be put in place; the message names the step and what helps."""


@dataclass(frozen=True)
class Ended:
    """How a command ended. status: None where it could not be started, or was killed for its time."""

    status: int | None
    out: str
    err: str


def carry_out(steps: Iterable[Step], say: Callable[[str], None]) -> None:
    """Do one step after the other; raises ServiceError at the first that must not fail and does."""
    for step in steps:
        say(told(step))
        try:
            if isinstance(step, Write):
                _write(step.file.path, step.file.text)
            elif isinstance(step, Remove):
                step.path.unlink(missing_ok=True)
        except OSError as fault:
            raise ServiceError(f"{fault.filename}: {fault.strerror}: what is above this was done") from None
        if isinstance(step, Run):
            _run(step, say)


def run(command: Sequence[str], timeout_s: float = COMMAND_S) -> Ended:
    """Run a command, and return how it ended; nothing is raised."""
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "SYSTEMD_PAGER": "", "SYSTEMD_COLORS": "0"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=timeout_s, check=False, env=environment
        )
    except OSError as fault:
        return Ended(None, "", f"{command[0]}: {fault.strerror}")
    except subprocess.TimeoutExpired:
        return Ended(None, "", f"it did not end within {timeout_s:.0f} s")
    return Ended(done.returncode, done.stdout, done.stderr)


def _run(step: Run, say: Callable[[str], None]) -> None:
    ended = run(step.command)
    words = " ".join(f"{ended.err} {ended.out}".split())
    if ended.status == 0:
        return
    if not step.must:
        say(f"       which failed, and need not stop anything: {words or ended.status}")
        return
    why = "; see why: journalctl -u jetsel.service -n 50" if "restart" in step.command else ""
    raise ServiceError(f"`{' '.join(step.command)}` failed: {words or f'exit status {ended.status}'}{why}")


def _write(path: Path, text: str) -> None:
    """Write a file aside, flush it, and rename it into place: a power cut leaves the one before or this one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        raise ConfigError(f"{path} is a link (a masked unit is one): remove it first")
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    aside = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(descriptor, MODE)
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        aside.replace(path)
    except OSError:
        aside.unlink(missing_ok=True)
        raise
