"""Have a running daemon read its files again after a command changed them, and find out what it serves then."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jetsel.base.endpoint import VARIABLE
from jetsel.base.errors import JetselError, NoDaemonError

if TYPE_CHECKING:
    from jetsel.artefact.installed import Installed
    from jetsel.site.family_calibrations import FamilyCalibrations

RELOAD_MS = 60_000.0  # a reload waits for the requests that are under way


@dataclass(frozen=True)
class ReloadOutcome:
    """What a running daemon made of a change. `reloaded` is None if no daemon listens: no failure.

    is_served: whether the daemon answers by the calibration that was chosen.
    """

    reloaded: bool | None
    message: str
    is_served: bool = False


def reload_daemon(calibrations: FamilyCalibrations, chosen: Installed | None, endpoint: str | None) -> ReloadOutcome:
    """Have the daemon read its files again, and return what it serves the family with then.

    chosen: what it should use, None for no calibration. endpoint: where it listens; None for $JETSEL_ENDPOINT, the
    configuration's, or the one that the other commands find. If the daemon refuses, the outcome
    says so; nothing is raised.
    """
    from jetsel.client import Client

    where = endpoint or (None if os.environ.get(VARIABLE) else calibrations.config.server.endpoint)
    try:
        with Client(where, timeout_ms=RELOAD_MS) as client:
            client.reload()
            families = {family.name: family for family in client.status().families}
    except NoDaemonError:
        return ReloadOutcome(None, "no daemon listens: the next one to start will use it")
    except JetselError as fault:
        return ReloadOutcome(False, f"the daemon was not reloaded: {fault}")
    if calibrations.family not in families:
        return ReloadOutcome(True, f"the daemon has reloaded, but does not serve family {calibrations.family}")
    served = families[calibrations.family]
    said = f"the daemon has reloaded, and serves family {served.name} with this calibration: {served.calibration}"
    used = None if served.calibration_identity is None else served.calibration_identity.sha256
    if used != (None if chosen is None else chosen.sha256):
        due = "no calibration" if chosen is None else f"{chosen.called} in {chosen.directory.parent}"
        repair = f"start it with models.calibrations = {str(calibrations.folder)!r}, or see its log"
        return ReloadOutcome(True, f"{said}. The daemon does not use {due}: {repair}")
    made = None if chosen is None else chosen.calibration
    if made is not None and served.default_policy != made.default_policy:
        said += f"; {served.default_policy} answers by default: {served.because}"
    return ReloadOutcome(True, said, is_served=True)
