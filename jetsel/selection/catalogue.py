"""The policies that one family offers under each criterion, by the names that requests use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jetsel.config import OwnPolicy
from jetsel.errors import ConfigError
from jetsel.premodel import Calibration, chain_from
from jetsel.selection.cascade import Cascade
from jetsel.selection.chain import ChainPolicy
from jetsel.selection.policy import Policy
from jetsel.selection.single import Single
from jetsel.wire import Criterion

CALIBRATED = ("chain", "chain-right", "cascade")  # what a family with a calibration offers
CRITERIA: tuple[Criterion, ...] = ("top1", "top5")


def catalogue(
    models: Sequence[str], calibration: Calibration | None, own: Mapping[str, OwnPolicy]
) -> dict[Criterion, dict[str, Policy]]:
    """Return every policy of a family by criterion and name.

    models: the family's, cheapest first. `single:<model>` always; `chain`, `chain-right` and `cascade` where the family
    is calibrated; and the owner's cascades whose models are all of this family.
    """
    offered: dict[Criterion, dict[str, Policy]] = {}
    for criterion in CRITERIA:
        policies: dict[str, Policy] = {f"single:{model}": Single(model) for model in models}
        if calibration is not None:
            rungs = calibration.cascades[criterion]
            policies["chain"] = ChainPolicy("chain", chain_from(calibration, criterion, "optimum"))
            policies["chain-right"] = ChainPolicy("chain-right", chain_from(calibration, criterion, "right"))
            policies["cascade"] = Cascade.of("cascade", [r.model for r in rungs], [r.threshold for r in rungs[:-1]])
        for name, policy in own.items():
            if set(policy.models) <= set(models):
                policies[name] = Cascade.of(name, policy.models, policy.thresholds)
        offered[criterion] = policies
    return offered


def check_own(own: Mapping[str, OwnPolicy], families: Mapping[str, Sequence[str]]) -> None:
    """Refuse a policy of the owner's that hides one of ours, or whose models are not all of one family.

    Raises ConfigError that says which mix.
    """
    for name, policy in own.items():
        if name in CALIBRATED or name.startswith("single:"):
            raise ConfigError(f"policies.{name}: jetsel has a policy of this name; example: [policies.quick]")
        if any(set(policy.models) <= set(models) for models in families.values()):
            continue
        homes = {model: [family for family, models in families.items() if model in models] for model in policy.models}
        unknown = [model for model, found in homes.items() if not found]
        if unknown:
            raise ConfigError(f"policies.{name}.models: no family has {', '.join(unknown)}; see: jetsel models list")
        mixed = ", ".join(f"{model} of {' and '.join(found)}" for model, found in homes.items())
        raise ConfigError(f"policies.{name}.models mixes families ({mixed}): a policy belongs to one family")
