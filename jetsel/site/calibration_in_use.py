"""Which calibration a family is served with: the owner's, the one shipped with the models, or the previous one."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial

from jetsel.artefact import installed
from jetsel.artefact.calibration import ANSWERS, Calibration
from jetsel.artefact.installed import Installed
from jetsel.base.config import Config, calibrations_folder
from jetsel.base.errors import CalibrationError
from jetsel.base.events import event
from jetsel.features import table_hash
from jetsel.policies import Policy, catalogue
from jetsel.policies.registry import no_such
from jetsel.wire.status import CalibrationIdentity
from jetsel.zoo import Family, Model

log = logging.getLogger("jetsel.models")


@dataclass(frozen=True, eq=False)
class CalibrationInUse:
    """The calibration that a family is served with, None if there is none, and the family's policies by name.

    source: which one it is, or why there is none, in words. refused: why another one was rejected, None if none was.
    identity: which one it is, for programs; None if there is none. unchanged_models: if a calibration was rejected
    because models changed, the models that are still as it was made for, the most accurate last.
    """

    calibration: Calibration | None
    policies: dict[str, Policy]
    source: str
    refused: str | None = None
    identity: CalibrationIdentity | None = None
    unchanged_models: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.source if self.refused is None else f"{self.source}; rejected: {self.refused}"

    def unknown(self, models: Collection[str]) -> list[str]:
        """Return the models that the calibration, in use or rejected, does not cover; [] if there is none."""
        models_known = self.unchanged_models if self.calibration is None else self.calibration.identities
        return [name for name in models if name not in models_known] if models_known else []

    def best(self, models: Collection[str]) -> str:
        """Return the model for doubtful images: the most accurate unchanged one, or the last of `models`."""
        return self.unchanged_models[-1] if self.unchanged_models else list(models)[-1]


def choose_calibration(
    family: Family, models: Mapping[str, Model], config: Config, before: CalibrationInUse | None
) -> CalibrationInUse:
    """Return the calibration to serve with: the one that the owner installed, or if there is none the shipped one.

    If a candidate does not fit the models, the calibration in use before a reload (`before`) stays if it still fits;
    if not, the shipped one is tried after the owner's. models: the served ones by name, cheapest first.
    """
    refused: list[str] = []
    unchanged_models: tuple[str, ...] = ()
    owners = calibrations_folder(config.models)
    for find in (partial(installed.current, owners, family.name), partial(find_shipped, family)):
        candidate = None
        try:
            candidate = find()
            if candidate is None:
                continue
            calibration = candidate.usable_calibration()
            policies = offered_policies(calibration, family, models, config.edge.models)
        except CalibrationError as fault:
            refused.append(f"number {candidate.number}: {fault}" if candidate and candidate.number else str(fault))
            _log_refusal(family.name, candidate, refused[-1])
            previous = _previous_if_fits(before, family, models, config)
            if previous is not None:
                return replace(previous, refused="; ".join(refused))
            unchanged_models = unchanged_models or find_unchanged_models(candidate, family, models)
            continue
        number = None if candidate.number == installed.SHIPPED else candidate.number
        sha256 = candidate.sha256
        identity = None if sha256 is None else CalibrationIdentity(number, calibration.created, sha256)
        return CalibrationInUse(calibration, policies, candidate.description, "; ".join(refused) or None, identity)
    source = f"rejected: {'; '.join(refused)}" if refused else "none was made"
    return CalibrationInUse(None, catalogue(list(models), None), source, unchanged_models=unchanged_models)


def find_unchanged_models(installed: Installed | None, family: Family, models: Mapping[str, Model]) -> tuple[str, ...]:
    """Return the models that are as a rejected calibration has them, the most accurate last; () if all or none are."""
    calibration = installed.calibration if installed is not None and not _is_retimed_here(installed) else None
    if calibration is None or calibration.labels_sha256 != family.labels.sha256:
        return ()
    calibrated = [name for name in models if name in calibration.identities]
    unchanged_models = [name for name in calibrated if calibration.identities[name] == models[name].manifest.identity]
    figures = calibration.figures
    if unchanged_models == calibrated:
        return ()
    return tuple(sorted(unchanged_models, key=lambda name: figures.get(f"single:{name}", {"top1": 0.0})["top1"]))


def find_shipped(family: Family) -> Installed | None:
    """Return the calibration shipped with the models, None if there is none."""
    return installed.shipped(family.calibration_folder, family.labels.sha256)


def offered_policies(
    calibration: Calibration, family: Family, models: Mapping[str, Model], elsewhere: Collection[str] = ()
) -> dict[str, Policy]:
    """Return a family's policies by name with this calibration. Raises CalibrationError if it does not fit.

    models: the served ones. elsewhere: models of the edge server, which the calibration may cover too.
    """
    identities = {name: model.manifest.identity for name, model in models.items()}
    check_fits(calibration, family, identities, elsewhere)
    policies = catalogue(list(models), calibration)
    default = calibration.default_policy
    if default not in policies and calibration.identities.keys() <= models.keys():
        raise CalibrationError(
            f"its default policy: the family has {no_such(default, policies)}: "
            "recalibrate (jetsel calibrate IMAGES), or update jetsel"
        )
    return policies


def check_fits(
    calibration: Calibration, family: Family, identities: Mapping[str, str], elsewhere: Collection[str] = ()
) -> None:
    """Raise CalibrationError if a calibration was made for other labels, models, features or pixels than those served.

    identities: of the served models by name, hashes of all that decides their outputs (Manifest.identity). A served
    model may be missing in the calibration; no policy uses it. elsewhere: models that may be missing here, since the
    edge server runs them. The error names each difference and the repair.
    """
    differences = []
    if calibration.labels_sha256 != family.labels.sha256:
        differences.append("other labels")
    if calibration.feature_table != table_hash():
        differences.append("another version of the features")
    if calibration.decode_px != family.decode_px:
        differences.append(f"images decoded for {calibration.decode_px} px, now for {family.decode_px}")
    for model, calibrated_identity in calibration.identities.items():
        if model not in identities:
            if model in elsewhere:
                continue
            differences.append(f"model {model} is neither served here nor named under [edge.models]")
        elif identities[model] != calibrated_identity:
            differences.append(f"model {model} has changed")
    if differences:
        raise CalibrationError(
            f"the calibration of family {calibration.family} was made for other models: "
            f"{'; '.join(differences)}. Run `jetsel calibrate IMAGES`, or put the models back"
        )


def _log_refusal(family: str, refused: Installed | None, reason: str) -> None:  # refused: None if it is unreadable
    fields = event("calibration-refused", family=family)
    if refused and refused.calibration and _is_retimed_here(refused):
        words = "the calibration that ships with family %s is for other models: the start or `%s` fits it to these"
        log.info(words, family, "jetsel calibrate --retime", extra=fields)
    else:
        log.error("calibration of family %s is not used: %s", family, reason, extra=fields)


def _is_retimed_here(installed_calibration: Installed) -> bool:
    """Whether it was shipped with the file ANSWERS, by which the next start fits it to the models here."""
    return installed_calibration.number == installed.SHIPPED and (installed_calibration.directory / ANSWERS).is_file()


def _previous_if_fits(
    before: CalibrationInUse | None, family: Family, models: Mapping[str, Model], config: Config
) -> CalibrationInUse | None:
    """Return the calibration in use before a reload, with the policies that it offers now; None if it does not fit."""
    if before is None or before.calibration is None:
        return None
    try:
        return replace(before, policies=offered_policies(before.calibration, family, models, config.edge.models))
    except CalibrationError:
        return None
