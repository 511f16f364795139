"""What one configuration serves: its models on disk, the families, the default one, limits, and calibrations."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jetsel.artefact import installed
from jetsel.base.config import Config, calibrations_folder
from jetsel.base.errors import ConfigError, UnknownFamilyError, did_you_mean
from jetsel.base.events import event
from jetsel.image import Limits
from jetsel.site.calibration_in_use import CalibrationInUse
from jetsel.site.config_file import applied
from jetsel.site.configured import ConfiguredFamily, configured, default_family, limits_of, served_families
from jetsel.site.family_calibrations import FamilyCalibrations
from jetsel.zoo import Family, Zoo, model_folders, scan

log = logging.getLogger("jetsel.models")


@dataclass(frozen=True, eq=False)
class ServedFamilies:
    """The families that are served, as configured. edge_family: the one that the edge server helps."""

    families: dict[str, ConfiguredFamily]
    default_family: str
    edge_family: str


@dataclass(frozen=True, eq=False)
class Site:
    """One configuration, and the models that its folders hold."""

    config: Config
    zoo: Zoo

    @property
    def limits(self) -> Limits:
        """The largest image that is accepted."""
        return limits_of(self.config)

    @property
    def default_family(self) -> str:
        """The family of requests that name none, of all on disk; raises ConfigError if there is none."""
        return default_family(self.config, list(self.zoo.families))

    @property
    def broken(self) -> list[str]:
        """What is in the models' folders and cannot be served, with the reason."""
        return [f"{item.path}: {item.reason}" for item in self.zoo.broken]

    def family(self, name: str | None) -> Family:
        """Return the named family, or the default one; raises UnknownFamilyError."""
        families = self.zoo.families
        wanted = name or self.default_family
        if wanted not in families:
            near = did_you_mean(wanted, families)
            raise UnknownFamilyError(f"there is no family {wanted}{near}: found: {', '.join(families)}")
        return families[wanted]

    def calibrations(self, family: str | None) -> FamilyCalibrations:
        """Return the calibrations of the family, or of the default one.

        Raises ConfigError if no family is named and none is the default, UnknownFamilyError if there is none of the
        name, neither models nor calibrations.
        """
        families = self.zoo.families
        if family is None and not families:
            raise UnknownFamilyError("there are no models: see [models] in `jetsel config`")
        default = self.default_family if family is None or family in families else None
        name = family or default or ""
        others = {other: one for other, one in families.items() if other != name}
        folder = calibrations_folder(self.config.models)
        if name not in families and not installed.history(folder, name):
            raise UnknownFamilyError(f"there is no family {name}; found: {', '.join(families) or 'none'}")
        return FamilyCalibrations(name, folder, self.config, families.get(name), name == default, others)

    def served(self, before: Mapping[str, CalibrationInUse] | None = None) -> ServedFamilies:
        """Return the families that are served.

        before: by family, the calibration in use until a reload; it stays if a new one is refused. Raises ConfigError
        if nothing can be served, or the configuration names what is not there.
        """
        names = served_families(self.zoo, self.config)
        if not names:
            folders = ", ".join(map(str, model_folders(self.config.models))) or "no folder"
            raise ConfigError(f"models.paths: no model in {folders}; {'; '.join(self.broken)}")
        default = default_family(self.config, names)
        helped = self.config.edge.family or default
        if helped not in names:
            raise ConfigError(f"edge.family: there is no family {helped!r}; found: {', '.join(names)}")
        known = before or {}
        families = {
            name: configured(self.zoo.families[name], self.config, is_default=name == default, before=known.get(name))
            for name in names
        }
        return ServedFamilies(families, default, helped)

    def log_broken(self) -> None:
        """Log each file that is left out."""
        for item in self.zoo.broken:
            log.error("model left out: %s: %s", item.path, item.reason, extra=event("model-left-out", path=item.path))


def open_site(config: Config) -> Site:
    """Read the models' folders of a configuration."""
    return Site(config, scan(model_folders(config.models)))


def read_site(path: Path | None) -> Site:
    """Read the configuration that applies, and its models' folders. path: of the file that a command was given."""
    return open_site(applied(path))
