"""The policies that one family offers under each criterion, by the names that requests use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jetsel.config import OwnPolicy
from jetsel.errors import ConfigError
from jetsel.policies.calibration import Calibration
from jetsel.policies.cascade import Cascade, rungs_of
from jetsel.policies.policy import Policy
from jetsel.policies.registry import GONE, KINDS
from jetsel.policies.single import Single
from jetsel.wire import Criterion

CRITERIA: tuple[Criterion, ...] = ("top1", "top5")


def catalogue(
    models: Sequence[str], calibration: Calibration | None, own: Mapping[str, OwnPolicy]
) -> dict[Criterion, dict[str, Policy]]:
    """Return every policy of a family by criterion and name.

    models: the family's, cheapest first. `single:<model>` always; where the family is calibrated what its calibration
    fitted; and the owner's cascades whose models are all of this family.
    """
    fitted = {} if calibration is None else calibrated(calibration)
    owners = {
        name: Cascade(name, rungs_of(policy.models, policy.thresholds))
        for name, policy in own.items()
        if set(policy.models) <= set(models)
    }
    return {
        criterion: {f"single:{model}": Single(model) for model in models} | fitted.get(criterion, {}) | owners
        for criterion in CRITERIA
    }


def calibrated(calibration: Calibration) -> dict[Criterion, dict[str, Policy]]:
    """Return each policy that the calibration fitted, by criterion and name."""
    made: dict[Criterion, dict[str, Policy]] = {criterion: {} for criterion in CRITERIA}
    for kind in KINDS:
        if kind.name in calibration.parts:
            for criterion, policy in kind.make(calibration.parts[kind.name], calibration).items():
                made[criterion][kind.name] = policy
    return made


def check_own(own: Mapping[str, OwnPolicy], families: Mapping[str, Sequence[str]]) -> None:
    """Refuse a policy of the owner's that hides one of ours, or whose models are not all of one family.

    Raises ConfigError that says which mix.
    """
    for name, policy in own.items():
        if name in {kind.name for kind in KINDS} | GONE.keys() or name.startswith("single:"):
            raise ConfigError(f"policies.{name}: jetsel has a policy of this name; example: [policies.quick]")
        if any(set(policy.models) <= set(models) for models in families.values()):
            continue
        homes = {model: [family for family, models in families.items() if model in models] for model in policy.models}
        unknown = [model for model, found in homes.items() if not found]
        if unknown:
            raise ConfigError(f"policies.{name}.models: no family has {', '.join(unknown)}; see: jetsel models list")
        mixed = ", ".join(f"{model} of {' and '.join(found)}" for model, found in homes.items())
        raise ConfigError(f"policies.{name}.models mixes families ({mixed}): a policy belongs to one family")
