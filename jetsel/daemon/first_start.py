"""Retiming: at the first start on a machine, fit shipped calibrations to its inference times, while it serves.

Models that were chosen on another machine stay, and the log reports them.
"""

from __future__ import annotations

import itertools
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from jetsel.artefact.calibration import ANSWERS
from jetsel.base.events import event
from jetsel.daemon.family import ServedFamily
from jetsel.zoo import Model

log = logging.getLogger("jetsel.models")

LIMIT_S = 1800.0  # a slow board takes four minutes (calibration/RESULTS-slow-board.md)
FAILED = "timing them failed, and `jetsel calibrate --retime` shows why"
LOAD_INTERVAL_S = 60.0
QUIET_LOAD = 0.5  # runnable processes for each core, as a mean over a minute (getloadavg(3))


def needs_retiming(family: ServedFamily) -> bool:
    """Whether the family's shipped calibration is to be fitted to this machine: the owner has installed no other.

    It must have been shipped with ANSWERS, the file by which thresholds are fitted to other times. If it was refused
    because it covers other models, it is fitted to the models present.
    """
    identity = family.in_use.identity
    return (identity is None or identity.number is None) and (family.on_disk.calibration_folder / ANSWERS).is_file()


def begin_retiming(families: Iterable[ServedFamily], config: Path | None, machine: str | None) -> None:
    """Retime the families that need it, in a thread. config: the daemon's file. machine: this one's name, if known."""
    due = [family for family in families if needs_retiming(family)]
    for family in due:
        report_other_machine(family.name, family.models.values(), machine)
    names = [family.name for family in due]
    options = [] if config is None else ["--config", str(config.absolute())]

    def retime_all() -> None:
        for name in names:
            arguments = ["calibrate", "--retime", "--family", name, *options]
            command = ["nice", sys.executable, "-m", "jetsel", *arguments]
            retime(name, command, itertools.repeat(LIMIT_S), wait_until_quiet)

    if names:
        threading.Thread(target=retime_all, name="retiming", daemon=True).start()


def report_other_machine(family: str, models: Iterable[Model], machine: str | None) -> None:
    """Log if a model's precision (such as int8) was chosen on another machine. machine: this one, None if unknown."""
    choices = [model.manifest.provenance.precision_choice for model in models]
    others = {choice.machine for choice in choices if choice and choice.machine} - {machine}
    if machine is not None and others:
        words = "the models of family %s were chosen on %s: `jetsel models pull efficientnet-lite` would choose anew"
        log.info(words, family, " and ".join(sorted(others)), extra=event("chosen-elsewhere", family=family))


def wait_until_quiet() -> None:
    """Return once the mean load is at most QUIET_LOAD for each core."""
    while True:
        threading.Event().wait(LOAD_INTERVAL_S)
        if os.getloadavg()[0] <= QUIET_LOAD * (os.cpu_count() or 1):
            return


def retime(family: str, command: Sequence[str], limits_s: Iterable[float], wait: Callable[[], None]) -> None:
    """Run the command that fits one family's calibration; repeat it after `wait` if it exceeds its time limit."""
    for number, limit_s in enumerate(limits_s):
        try:
            done = subprocess.run(
                command,
                cwd="/",  # so that it imports no module from the daemon's folder
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=limit_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            if number == 0:
                _warn(family, "this machine is too busy to time them; the daemon tries again when it is quiet")
            wait()
            continue
        except OSError as error:
            reason: str | None = f"they cannot be timed: {error.strerror}"
        else:
            reason = _failure_reason(done)
        if reason is None:
            line = done.stdout.strip().splitlines()[0]
            log.info("family %s: %s", family, line, extra=event("retimed", family=family))
        else:
            _warn(family, f"{reason}; the daemon tries again at its next start")
        return


def _failure_reason(done: subprocess.CompletedProcess[str]) -> str | None:
    """Return why the command failed, by its last line on standard error; None if it succeeded."""
    if done.returncode < 0:
        return "the process that timed them was ended"
    lines = [line.removeprefix("jetsel: ") for line in done.stderr.splitlines() if line.startswith("jetsel: ")]
    return None if done.returncode == 0 else lines[-1] if lines else FAILED


def _warn(family: str, reason: str) -> None:
    fields = event("retiming-failed", family=family, reason=reason)
    log.warning("the models of family %s keep the times of another machine: %s", family, reason, extra=fields)
