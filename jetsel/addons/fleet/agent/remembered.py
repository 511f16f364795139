"""What the agent remembers between rounds: one JSON file, which is replaced as a whole."""

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
    """A plan that is being installed or tested. before: version to roll back to. canary: that version's results.

    rounds: rounds that began to install or test it. worse: why the daemon must roll back, until that has succeeded;
    None while there is no verdict.
    """

    serial: int
    before: int
    canary: dict[str, CanaryResult]
    rounds: int = 1
    worse: str | None = None


class ReportedTimes(Struct, frozen=True):
    """The daemon's histograms at the last line, so that the next line reports the difference. instance: of the daemon.

    runs: by family and model.
    """

    instance: str
    total: Histogram
    runs: dict[str, dict[str, Histogram]]


class AgentMemory(Struct, frozen=True, kw_only=True):
    """The agent's memory. series, sequence: of the last line of usage. seen: highest serial of a plan, by signing key.

    judged: by public key, the highest serial that was installed, refused or rolled back, and is not tried again; keys
    that are no longer trusted do not count. trial: result of the last plan with a verdict. waits: what failed in the
    last round. memory_mb: by family and model, as measured. times: None before a daemon's first line.
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


def read(path: Path) -> AgentMemory:
    """Return the memory; if there is none, or it is damaged, a new series begins."""
    try:
        return msgspec.json.decode(read_bounded(path, _MAX_BYTES), type=AgentMemory)
    except FileNotFoundError:
        pass
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as fault:
        log.error(
            "%s: cannot be read (%s): all plans count as new", path, fault, extra=event("fleet-forgotten", path=path)
        )
    return AgentMemory(series=secrets.token_hex(4))


def write(path: Path, remembered: AgentMemory) -> AgentMemory:
    """Replace the file and return the memory; raises RepositoryError."""
    try:
        replace(path, msgspec.json.encode(remembered))
    except OSError as fault:
        raise RepositoryError(f"{path}: not written ({fault.strerror}): {repair_of(fault)}") from fault
    return remembered
