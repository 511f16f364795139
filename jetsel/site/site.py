"""A configuration with its models on disk: the families, the default one, limits, and calibrations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from jetsel.artefact import installed
from jetsel.artefact.calibration import Calibration
from jetsel.artefact.installed import SHIPPED, Installed
from jetsel.base.config import Config, calibrations_folder
from jetsel.base.errors import CalibrationError, ConfigError, UnknownFamilyError, did_you_mean
from jetsel.image import Limits
from jetsel.policies import catalogue
from jetsel.site.calibration_in_use import CalibrationInUse, find_shipped, find_unchanged_models, offered_policies
from jetsel.site.config_file import locate_and_read
from jetsel.site.configured import (
    ConfiguredFamily,
    configure_family,
    default_family,
    default_policy_of,
    limits_of,
    served_families,
    served_models,
)
from jetsel.zoo import Family, Model, Zoo, model_folders, scan


@dataclass(frozen=True, eq=False)
class ServedFamilies:
    """The served families by name. edge_family: name of the one whose requests may use the edge server."""

    families: dict[str, ConfiguredFamily]
    default_family: str
    edge_family: str


@dataclass(frozen=True, eq=False)
class Incumbent:
    """The default policy and calibration (None without one) that a new calibration would replace.

    is_chosen: whether a calibration or the configuration chose the policy; a new policy must then be better.
    """

    policy: str
    calibration: Calibration | None = None
    is_chosen: bool = True
    models: frozenset[str] = frozenset()  # of the policy


@dataclass(frozen=True)
class FamilyCalibrations:
    """One family's calibrations: those that the owner installed below `folder`, and the one shipped with its models.

    models: None if only the owner's calibrations are left on disk. is_default: whether requests that name no family use
    this one. others: the other families by name.
    """

    family: str
    folder: Path
    config: Config
    models: Family | None
    is_default: bool
    others: Mapping[str, Family]

    def entries(self) -> list[Installed]:
        """Return every calibration, the newest first, the shipped one last. Raises CalibrationError.

        A calibration that the daemon would reject has a reason, even if it is readable.
        """
        owners = installed.history(self.folder, self.family)
        own = None if self.models is None else find_shipped(self.models)
        entries = [self._with_reason(entry) for entry in [*owners, *([own] if own else [])]]
        if own is not None and entries[-1].reason is None:
            entries[-1] = replace(entries[-1], is_current=not any(entry.is_current for entry in owners))
        return entries

    def entry(self, number: int | None) -> Installed:
        """Return the calibration of this number: 0 is the shipped, None the current one. Raises CalibrationError."""
        entries = self.entries()
        for entry in entries:
            if entry.is_current if number is None else entry.number == number:
                return entry
        if not entries:
            raise CalibrationError(f"family {self.family} has no calibration yet: none came with it or was installed")
        numbers = ", ".join(str(entry.number) for entry in entries)
        missing = "no calibration in use" if number is None else f"no calibration {number}"
        raise CalibrationError(f"family {self.family} has {missing}: name one of {numbers}")

    def incumbent(self) -> Incumbent:
        """Return the current default policy and its calibration, with which a new calibration is compared.

        A calibration that needs models of the edge server is ignored. Raises CalibrationError if there are no models.
        """
        models, served = self.served()
        current = next((entry for entry in self.entries() if entry.is_current), None)
        calibration = current.calibration if current is not None and current.reason is None else None
        if calibration is not None and not calibration.identities.keys() <= served.keys():
            calibration = None  # it needs models of the edge server, which are not used here
        unchanged_models = find_unchanged_models(current, models, served) if calibration is None else ()
        policies = catalogue(list(served), calibration)
        in_use = CalibrationInUse(calibration, policies, source="", unchanged_models=unchanged_models)
        policy, _ = default_policy_of(models, in_use, self.config, served, is_default=self.is_default)
        is_chosen = calibration is not None or self.config.policy.default is not None
        return Incumbent(policy, calibration, is_chosen, frozenset(policies[policy].models))

    def served(self) -> tuple[Family, dict[str, Model]]:
        """Return the family and its served models by name. Raises CalibrationError if there are none."""
        if self.models is None:
            raise CalibrationError(f"family {self.family} has no models here: see `jetsel models list`")
        served = served_models(self.models, self.config)
        if not served:
            raise CalibrationError(f"models.only names no model of family {self.family}: name one, or leave it out")
        return self.models, served

    def _with_reason(self, entry: Installed) -> Installed:
        """Return the entry, with the reason if the daemon would reject it."""
        if self.models is None or entry.calibration is None:
            return entry
        try:
            served = served_models(self.models, self.config)
            offered_policies(entry.calibration, self.models, served, self.config.edge.models)
        except CalibrationError as fault:
            return replace(entry, reason=str(fault))
        return entry


def number_text(number: int) -> str:
    """Return a calibration's number as users read it."""
    return "0 (shipped)" if number == SHIPPED else str(number)


@dataclass(frozen=True, eq=False)
class Site:
    """One configuration, and `zoo`, the families and models in its folders."""

    config: Config
    zoo: Zoo

    @property
    def limits(self) -> Limits:
        """Limits of an accepted image in bytes and pixels."""
        return limits_of(self.config)

    @property
    def default_family(self) -> str:
        """The family of requests that name none, of all on disk. Raises ConfigError if there is none."""
        return default_family(self.config, list(self.zoo.families))

    @property
    def broken(self) -> list[str]:
        """Files in the models' folders that cannot be served, as "path: reason"."""
        return [f"{item.path}: {item.reason}" for item in self.zoo.broken]

    def family(self, name: str | None) -> Family:
        """Return the named family, or the default one for None. Raises UnknownFamilyError."""
        families = self.zoo.families
        family_name = name or self.default_family
        if family_name not in families:
            near = did_you_mean(family_name, families)
            raise UnknownFamilyError(f"there is no family {family_name}{near}: found: {', '.join(families)}")
        return families[family_name]

    def calibrations(self, family: str | None) -> FamilyCalibrations:
        """Return the calibrations of the named family, or of the default one for None.

        Raises ConfigError if there is no default family, UnknownFamilyError if the family has neither models nor
        calibrations.
        """
        families = self.zoo.families
        if family is None and not families:
            raise UnknownFamilyError("there are no models: see [models] in `jetsel config`")
        default = self.default_family if family is None or family in families else None
        name = family or default or ""
        others = {other_name: other for other_name, other in families.items() if other_name != name}
        folder = calibrations_folder(self.config.models)
        if name not in families and not installed.history(folder, name):
            raise UnknownFamilyError(f"there is no family {name}; found: {', '.join(families) or 'none'}")
        return FamilyCalibrations(name, folder, self.config, families.get(name), name == default, others)

    def served(self, before: Mapping[str, CalibrationInUse] | None = None) -> ServedFamilies:
        """Return the served families.

        before: by family, the calibration in use before a reload, kept if a new one is rejected. Raises ConfigError if
        nothing can be served, or the configuration names a family, model or policy that does not exist.
        """
        names = served_families(self.zoo, self.config)
        if not names:
            folders = ", ".join(map(str, model_folders(self.config.models))) or "no folder"
            raise ConfigError(f"models.paths: no model in {folders}; {'; '.join(self.broken)}")
        default = default_family(self.config, names)
        edge_family = self.config.edge.family or default
        if edge_family not in names:
            raise ConfigError(f"edge.family: there is no family {edge_family!r}; found: {', '.join(names)}")
        calibrations_before = before or {}
        families = {
            name: configure_family(
                self.zoo.families[name], self.config, is_default=name == default, before=calibrations_before.get(name)
            )
            for name in names
        }
        return ServedFamilies(families, default, edge_family)


def open_site(config: Config) -> Site:
    """Read the models' folders of a configuration."""
    return Site(config, scan(model_folders(config.models)))


def read_site(path: Path | None) -> Site:
    """Read the configuration and its models' folders. path: the command line's file, None for the one that applies."""
    return open_site(locate_and_read(path))
