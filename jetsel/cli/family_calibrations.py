"""The calibrations of one family as the commands find them: the owner's, and the one that came with its models."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from jetsel.base.config import Config, calibrations_folder
from jetsel.base.endpoint import VARIABLE
from jetsel.base.errors import CalibrationError, NoDaemonError, UnknownFamilyError
from jetsel.cli import settings
from jetsel.daemon.calibration import InUse as Chosen
from jetsel.daemon.calibration import competing_models, offered, shipped
from jetsel.daemon.family import defaults_of, served_models
from jetsel.daemon.snapshot import default_family, limits_of
from jetsel.policies import catalogue, installed
from jetsel.policies.installed import SHIPPED, Installed
from jetsel.zoo import model_folders, scan

if TYPE_CHECKING:
    from jetsel.calibrate.calibrating import InUse
    from jetsel.calibrate.command import Job
    from jetsel.policies.calibration import Calibration
    from jetsel.wire import Criterion
    from jetsel.zoo import Family, Model

RELOAD_MS = 60_000.0  # a reload waits for the requests that are under way


@dataclass(frozen=True)
class FamilyCalibrations:
    """One family's calibrations. `models` is None where the models are gone and only the owner's calibrations stay.

    is_default: whether requests that name no family are this one's. others: the families beside it.
    """

    family: str
    folder: Path
    config: Config
    models: Family | None
    is_default: bool
    others: Mapping[str, Family]

    def entries(self) -> list[Installed]:
        """Every calibration, the newest first and what came with the models last; raises CalibrationError.

        One that the daemon would refuse has the reason, also where it can be read.
        """
        owners = installed.history(self.folder, self.family)
        own = None if self.models is None else shipped(self.models)
        judged = [self._judged(entry) for entry in [*owners, *([own] if own else [])]]
        if own is not None and judged[-1].reason is None:
            judged[-1] = replace(judged[-1], is_current=not any(entry.is_current for entry in owners))
        return judged

    def entry(self, number: int | None) -> Installed:
        """The calibration with this number, 0 for what came with the models, or the current one for None."""
        entries = self.entries()
        for entry in entries:
            if entry.is_current if number is None else entry.number == number:
                return entry
        if not entries:
            raise CalibrationError(
                f"family {self.family} has no calibration yet: none came with it, none was installed"
            )
        known = ", ".join(str(entry.number) for entry in entries)
        wanted = "none that is in use" if number is None else f"no number {number}"
        raise CalibrationError(f"family {self.family} has {wanted} among its calibrations: name one of {known}")

    def in_use(self, criterion: Criterion) -> InUse:
        """What a daemon of this configuration answers by; raises CalibrationError where there are no models."""
        from jetsel.calibrate.calibrating import InUse

        models, served = self.served()
        calibration = self._current()
        if calibration is not None and not calibration.identities.keys() <= served.keys():
            calibration = None  # it has models of the edge server, which is not asked here
        chosen = Chosen(calibration, catalogue(list(served), calibration), "")
        policies, _ = defaults_of(models, chosen, self.config, list(served)[-1], is_default=self.is_default)
        is_chosen = calibration is not None or self.config.policy.default is not None
        return InUse(policies[criterion], calibration, is_chosen)

    def served(self) -> tuple[Family, dict[str, Model]]:
        """The family, and its models that are served by name; raises CalibrationError where there are none."""
        if self.models is None:
            raise CalibrationError(f"family {self.family} has no models here: see `jetsel models list`")
        served = served_models(self.models, self.config)
        if not served:
            raise CalibrationError(f"models.only names no model of family {self.family}: name one, or leave it out")
        return self.models, served

    def job(self, path: Path, photos: Path, label_map: Path | None = None, labels_from: str | None = None) -> Job:
        """What records these photographs; raises CalibrationError where the configuration has no model served."""
        from jetsel.calibrate.classes import check_family
        from jetsel.calibrate.command import Job

        models, served = self.served()
        competing = competing_models(served, self._current(), self.config)
        served = {name: model for name, model in served.items() if name in competing or name == labels_from}
        if labels_from is None:
            check_family(photos, models, self.others, label_map)
        limits = limits_of(self.config)
        return Job(models, served, self.config, limits, path, photos, label_map, labels_from)

    @property
    def not_offered(self) -> dict[str, str]:
        """What the calibration in use leaves out on this machine, and why: one that replaces it does so too."""
        calibration = self._current()
        return {} if calibration is None else calibration.not_offered

    def _current(self) -> Calibration | None:
        entry = next((entry for entry in self.entries() if entry.is_current and entry.reason is None), None)
        return None if entry is None else entry.calibration

    def _judged(self, entry: Installed) -> Installed:
        if self.models is None or entry.calibration is None:
            return entry
        try:
            served = served_models(self.models, self.config)
            offered(entry.calibration, self.models, served, self.config.edge.models)
        except CalibrationError as fault:
            return replace(entry, reason=str(fault))
        return entry


def find(config: Path | None, family: str | None) -> FamilyCalibrations:
    """Return the calibrations of the family, or of the configuration's default one.

    Raises ConfigError where no family is named and none is the default, UnknownFamilyError where there is none such.
    """
    values = settings.read(settings.locate(config))
    zoo = scan(model_folders(values.models))
    if family is None and not zoo.families:
        raise UnknownFamilyError("there are no models: see [models] in `jetsel config`")
    default = default_family(values, list(zoo.families)) if family is None or family in zoo.families else None
    name = family or default or ""
    models = zoo.families.get(name)
    others = {other: one for other, one in zoo.families.items() if other != name}
    folder = calibrations_folder(values.models)
    calibrations = FamilyCalibrations(name, folder, values, models, name == default, others)
    if calibrations.models is None and not installed.history(calibrations.folder, name):
        raise UnknownFamilyError(f"there is no family {name}; found: {', '.join(zoo.families) or 'none'}")
    return calibrations


@dataclass(frozen=True)
class ReloadOutcome:
    """What a running daemon made of a change. `reloaded` is None where no daemon listens: no failure.

    is_served: whether the daemon answers by the calibration that was chosen.
    """

    reloaded: bool | None
    said: str
    is_served: bool = False


def tell_daemon(calibrations: FamilyCalibrations, chosen: Installed | None, endpoint: str | None) -> ReloadOutcome:
    """Have the daemon read its files again, and return what it serves the family with then.

    chosen: what it should use, None for no calibration. endpoint: where it listens; None for $JETSEL_ENDPOINT, the
    configuration's, or the one that the other commands find. A daemon that refuses is told of, not raised.
    """
    from jetsel.base.errors import JetselError
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
        return ReloadOutcome(True, f"the daemon has reloaded, and does not serve family {calibrations.family}")
    served = families[calibrations.family]
    said = f"the daemon has reloaded, and serves family {served.name} with this calibration: {served.calibration}"
    used = None if served.calibration_identity is None else served.calibration_identity.sha256
    if used != (None if chosen is None else chosen.sha256):
        due = "no calibration" if chosen is None else f"{chosen.called} in {chosen.directory.parent}"
        repair = f"start it with models.calibrations = {str(calibrations.folder)!r}, or see its log"
        return ReloadOutcome(True, f"{said}. The daemon does not use {due}: {repair}")
    if chosen is not None and chosen.calibration is not None:
        defaults = served.default_policy
        if defaults != chosen.calibration.default_policy:
            said += f"; {defaults['top1']} answers by default: {served.because}"
    return ReloadOutcome(True, said, is_served=True)


def named(number: int) -> str:
    """Return a calibration's number as it is printed and typed."""
    return "0 (shipped)" if number == SHIPPED else str(number)
