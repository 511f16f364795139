"""What the agent knows from one round to the next: one JSON file, replaced whole."""

from __future__ import annotations

import logging
import secrets
from pathlib import Path

import msgspec
from msgspec import Struct

from jetsel.addons.fleet.usage import CanaryResult, Trial
from jetsel.base.errors import RepositoryError
from jetsel.base.events import event
from jetsel.base.files import read_bounded, repair_of, replace
from jetsel.wire.counts import Histogram

log = logging.getLogger("jetsel.fleet")

_MAX_BYTES = 2**20


class OnTrial(Struct, frozen=True, kw_only=True):
    """A plan that is being installed or tried out. before: the version to go back to; canary: what that one gave.

    rounds: how many have begun to install it or to try it out. worse: why the daemon has to go back to the version
    before, which has not succeeded yet; None while there is no verdict.
    """

    serial: int
    before: int
    canary: dict[str, CanaryResult]
    rounds: int = 1
    worse: str | None = None


class ReportedTimes(Struct, frozen=True):
    """The daemon's histograms in the last line, whose next one reports what came since. instance: of the daemon.

    runs: by family and model.
    """

    instance: str
    total: Histogram
    runs: dict[str, dict[str, Histogram]]


class Remembered(Struct, frozen=True, kw_only=True):
    """series, sequence: of the last line of usage. seen: by public key the highest serial of a plan that it signed.

    judged: by public key the highest that was installed, refused or rolled back; it is not tried again. A key that is
    no longer trusted does not count. trial: what became of the last plan with a verdict; waits: what could not be done
    in the last round. memory_mb: by family and model, what each took when it was tried. times: None before the first
    line of a daemon.
    """

    series: str
    sequence: int = 0
    seen: dict[str, int] = {}
    judged: dict[str, int] = {}
    trial: Trial | None = None
    waits: Trial | None = None
    on_trial: OnTrial | None = None
    memory_mb: dict[str, dict[str, float | None]] = {}
    dropped: int = 0
    times: ReportedTimes | None = None


def read(path: Path) -> Remembered:
    """Return what was remembered; if there is nothing, or it is damaged, a new series begins."""
    try:
        return msgspec.json.decode(read_bounded(path, _MAX_BYTES), type=Remembered)
    except FileNotFoundError:
        pass
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as fault:
        log.error(
            "%s: cannot be read (%s): all plans count as new", path, fault, extra=event("fleet-forgotten", path=path)
        )
    return Remembered(series=secrets.token_hex(4))


def write(path: Path, remembered: Remembered) -> Remembered:
    """Have the file say this, and return it; raises RepositoryError."""
    try:
        replace(path, msgspec.json.encode(remembered))
    except OSError as fault:
        raise RepositoryError(f"{path}: not written ({fault.strerror}): {repair_of(fault)}") from fault
    return remembered
