"""The calibrations of one family: the owner's history, the one that came with its models, and the one in use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from jetsel.artefact import installed
from jetsel.artefact.calibration import Calibration
from jetsel.artefact.installed import SHIPPED, Installed
from jetsel.base.config import Config
from jetsel.base.errors import CalibrationError
from jetsel.policies import catalogue
from jetsel.site.calibration_in_use import CalibrationInUse, offered, shipped, unchanged
from jetsel.site.configured import default_policy_of, served_models
from jetsel.zoo import Family, Model


@dataclass(frozen=True, eq=False)
class Incumbent:
    """The policy that answers by default, and the calibration that it belongs to, None if none is in use.

    is_chosen: whether somebody chose it, by a calibration or in the configuration: a candidate must be a better choice.
    """

    policy: str
    calibration: Calibration | None = None
    is_chosen: bool = True


@dataclass(frozen=True)
class FamilyCalibrations:
    """One family's calibrations. `models` is None if the models are gone and only the owner's calibrations are left.

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

        One that the daemon would refuse has the reason, also if it can be read.
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
        wanted = "no calibration in use" if number is None else f"no calibration {number}"
        raise CalibrationError(f"family {self.family} has {wanted}: name one of {known}")

    def incumbent(self) -> Incumbent:
        """Return what a daemon of this configuration answers by; raises CalibrationError if there are no models."""
        models, served = self.served()
        current = next((entry for entry in self.entries() if entry.is_current), None)
        calibration = current.calibration if current is not None and current.reason is None else None
        if calibration is not None and not calibration.identities.keys() <= served.keys():
            calibration = None  # it has models of the edge server, which is not asked here
        same = unchanged(current, models, served) if calibration is None else ()
        in_use = CalibrationInUse(calibration, catalogue(list(served), calibration), "", unchanged=same)
        policy, _ = default_policy_of(models, in_use, self.config, served, is_default=self.is_default)
        is_chosen = calibration is not None or self.config.policy.default is not None
        return Incumbent(policy, calibration, is_chosen)

    def models_in_use(self) -> frozenset[str]:
        """Return the models of the policy that `incumbent` returns."""
        _, served = self.served()
        one = self.incumbent()
        return frozenset(catalogue(list(served), one.calibration)[one.policy].models)

    def served(self) -> tuple[Family, dict[str, Model]]:
        """The family, and its models that are served by name; raises CalibrationError if there are none."""
        if self.models is None:
            raise CalibrationError(f"family {self.family} has no models here: see `jetsel models list`")
        served = served_models(self.models, self.config)
        if not served:
            raise CalibrationError(f"models.only names no model of family {self.family}: name one, or leave it out")
        return self.models, served

    def _judged(self, entry: Installed) -> Installed:
        if self.models is None or entry.calibration is None:
            return entry
        try:
            served = served_models(self.models, self.config)
            offered(entry.calibration, self.models, served, self.config.edge.models)
        except CalibrationError as fault:
            return replace(entry, reason=str(fault))
        return entry


def named(number: int) -> str:
    """Return a calibration's number as it is printed and typed."""
    return "0 (shipped)" if number == SHIPPED else str(number)
