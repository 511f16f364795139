"""The first start on a machine: a calibration that shipped with its models is fitted to this machine's times.

That takes seconds, in a process of its own beside the requests, which installs what it finds and has this one reload.
"""

from __future__ import annotations

import logging
import subprocess
import threading
from collections.abc import Iterable
from pathlib import Path

from jetsel.base.child import python_command
from jetsel.base.events import event
from jetsel.daemon.family import ServedFamily
from jetsel.policies.calibration import ANSWERS

log = logging.getLogger("jetsel.models")

LIMIT_S = 600.0  # a board's core takes a minute; longer, and something hangs


def needs_retiming(family: ServedFamily) -> bool:
    """Whether a calibration came with the models, and with what it was fitted on, and the owner has none in use.

    Where the one that came is for other models too, it is refused, and fitted again to those that are here.
    """
    identity = family.in_use.identity
    return (identity is None or identity.number is None) and (family.shipped / ANSWERS).is_file()


def retime(families: Iterable[ServedFamily], config: Path | None) -> None:
    """Begin with those that need it, one after the other. config: the daemon's own file."""
    names = [family.name for family in families if needs_retiming(family)]
    if names:
        threading.Thread(target=_retime, args=(names, config), name="retiming", daemon=True).start()


def _retime(names: list[str], config: Path | None) -> None:
    for name in names:
        command = ["nice", *python_command("jetsel", "calibrate", "--retime", "--family", name)]
        command += [] if config is None else ["--config", str(config)]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=True
            )
        except (OSError, subprocess.SubprocessError) as error:
            said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1]
            told = event("retiming-failed", family=name, reason=said)
            log.warning("family %s keeps another machine's times: %s", name, said, extra=told)
            continue
        log.info("family %s: %s", name, done.stdout.strip().splitlines()[0], extra=event("retimed", family=name))
