"""One family as configured: its served models, its calibration in use, its default policy and fallback."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from jetsel.base.config import Config
from jetsel.base.errors import ConfigError
from jetsel.base.events import event
from jetsel.image import Limits
from jetsel.policies.front import Front, front_of, point_of, points_here
from jetsel.policies.registry import no_such
from jetsel.site.calibration_in_use import CalibrationInUse, choose_calibration
from jetsel.zoo import Family, Model, Zoo
from jetsel.zoo.store import planned_folders

OURS = ("imagenet", "starter")  # the families that jetsel downloads and ships


def limits_of(config: Config) -> Limits:
    """Return the limits of an accepted image in bytes and pixels, in serving as in calibration."""
    return Limits(int(config.server.max_image_mb * 1e6), int(config.server.max_image_megapixels * 1e6))


def default_family(config: Config, families: Sequence[str]) -> str:
    """Return the family of requests that name none. families: names of all that exist.

    It is the configured one, or else the first of these that exists: the first of the fleet's plan, the only one of the
    owner, ImageNet's, the starter family. Raises ConfigError if none exists, or the configured one does not.
    """
    default = config.models.default_family
    if default is not None:
        if default not in families:
            raise ConfigError(f"models.default_family: there is no family {default!r}; found: {', '.join(families)}")
        return default
    owners = [name for name in families if name not in OURS]
    planned = [path.name.partition("-")[2] for path in planned_folders()]
    preferred = [*planned, *(owners if len(owners) == 1 else []), *OURS]
    preferred_here = [name for name in preferred if name in families]
    if preferred_here:
        return preferred_here[0]
    raise ConfigError(f"models.default_family: there are several families ({', '.join(families)}): set the default")


def served_models(family: Family, config: Config) -> dict[str, Model]:
    """Return the family's models that models.only allows (all if it is empty), by name, cheapest first."""
    only = config.models.only
    return {model.manifest.name: model for model in family.models if not only or model.manifest.name in only}


def served_families(zoo: Zoo, config: Config) -> list[str]:
    """Return names of families with a served model. Raises ConfigError if the configuration names unknown models."""
    names = {model.manifest.name for family in zoo.families.values() for model in family.models}
    for key, chosen in (("only", config.models.only), ("backends", config.models.backends)):
        unknown = sorted(set(chosen) - names)
        if unknown:
            raise ConfigError(f"models.{key}: no folder has {', '.join(unknown)}; see: jetsel models list")
    return [name for name, family in zoo.families.items() if served_models(family, config)]


log = logging.getLogger("jetsel.models")


@dataclass(frozen=True)
class Defaults:
    """How requests are answered that do not set it. because: why `policy` is the default, in words.

    fallback: the model that answers if the policy is in doubt. on_doubt: "use" the fallback, or "refuse".
    """

    policy: str
    because: str
    fallback: str
    on_doubt: str


@dataclass(frozen=True, eq=False)
class ConfiguredFamily:
    """One family as it is served; no model is loaded.

    models: by name; first those that the calibration in use does not cover, then the others, cheapest first. front:
    operating points (policies with accuracy and cost) to adapt to load and power; None without a calibration, and if
    neither a latency target nor a power budget is set.
    """

    family: Family
    models: dict[str, Model]
    in_use: CalibrationInUse
    defaults: Defaults
    front: Front | None


def configure_family(
    family: Family, config: Config, *, is_default: bool, before: CalibrationInUse | None = None
) -> ConfiguredFamily:
    """Return a family as the configuration serves it.

    before: the calibration in use before a reload; it stays if the new one is rejected. is_default: whether it is the
    default family. If that lacks the configured fallback or policy, ConfigError is raised; others use their own.
    """
    served = served_models(family, config)
    in_use = choose_calibration(family, served, config, before)
    models = _by_time(served, in_use)
    if unknown := in_use.unknown(models):
        words = "family %s: not calibrated: %s: no policy uses them until `jetsel calibrate` finds that they pay"
        fields = event("not-calibrated", family=family.name, models=unknown)
        log.info(words, family.name, ", ".join(unknown), extra=fields)
    best = in_use.best(models)
    fallback = config.policy.fallback or best
    if fallback not in models:
        if is_default:
            raise ConfigError(
                f"policy.fallback: family {family.name} has no model {fallback!r}; it has {', '.join(models)}"
            )
        fallback = best
    default, because = default_policy_of(family, in_use, config, models, is_default=is_default)
    defaults = Defaults(default, because, fallback, config.policy.on_doubt)
    return ConfiguredFamily(family, models, in_use, defaults, _front(family, config, in_use, default, models))


def default_policy_of(
    family: Family, in_use: CalibrationInUse, config: Config, models: Collection[str], *, is_default: bool
) -> tuple[str, str]:
    """Return the name of the default policy and the reason for it, in words.

    models: names of the served ones, the most expensive last. If the calibration's policy needs others, it is the most
    accurate of those that can run. Raises ConfigError if the default family lacks the configured policy.
    """
    calibration, offered = in_use.calibration, in_use.policies
    configured_policy = config.policy.default
    if configured_policy is not None and (is_default or configured_policy in offered):
        if configured_policy not in offered:
            raise ConfigError(f"policy.default: family {family.name} has {no_such(configured_policy, offered)}")
        return configured_policy, "it is set in the configuration"
    if calibration is not None:
        calibrated, figures = calibration.default_policy, calibration.figures
        runnable = [name for name, policy in offered.items() if set(policy.models) <= set(models)]
        if calibrated in runnable:
            return calibrated, calibration.because
        best = max(runnable, key=lambda name: figures[name]["top1"] if name in figures else 0.0)
        return best, f"{calibrated} needs models that are not served: the most accurate of the others is used"
    reason = "without a calibration the most expensive model answers"
    if in_use.unchanged_models:
        reason = "the most accurate model that has not changed answers until `jetsel calibrate IMAGES`"
    return f"single:{in_use.best(models)}", reason


def _front(
    family: Family, config: Config, in_use: CalibrationInUse, name: str, models: Collection[str]
) -> Front | None:
    """Return the operating points to adapt among: the default policy `name`, and cheaper ones with least_accuracy."""
    calibration, least = in_use.calibration, config.policy.least_accuracy or 0.0
    if calibration is None or (config.policy.latency_target_ms is None and config.power.budget_w is None):
        return None
    top = point_of(in_use.policies[name], calibration)
    if top is None:
        return None
    points = points_here(in_use.policies, calibration, models)
    if top.known_accuracy < least:
        words = "policy.least_accuracy is %g, and %s of family %s has %.3f: no cheaper operating point is used"
        fields = event("front-too-weak", family=family.name)
        log.warning(words, least, name, family.name, top.accuracy, extra=fields)
    others = [point for point in points if point.policy.name != name and point.known_accuracy >= least]
    return front_of(others, top)


def _by_time(models: Mapping[str, Model], in_use: CalibrationInUse) -> dict[str, Model]:
    """Return the uncalibrated models, then the others, each by latency: the last model answers doubtful images."""
    costs_ms = {} if in_use.calibration is None else in_use.calibration.costs_ms
    times_ms = {name: costs_ms.get(name, model.manifest.cost_ms) for name, model in models.items()}
    unknown = in_use.unknown(models)
    return {name: models[name] for name in sorted(models, key=lambda name: (name not in unknown, times_ms[name]))}
