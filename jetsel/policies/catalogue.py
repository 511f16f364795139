"""The policies that one family offers under each criterion, by the names that requests use."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from jetsel.config import OwnPolicy
from jetsel.errors import ConfigError
from jetsel.policies.averaged import AveragedCascade
from jetsel.policies.cascade import Cascade
from jetsel.policies.chain import ChainPolicy
from jetsel.policies.policy import Policy
from jetsel.policies.single import Single
from jetsel.policies.skipping import SkippingCascade
from jetsel.policies.worth import BoostedPolicy, EmbeddingPolicy
from jetsel.premodel import Calibration, Scaling, Shares, chain_from, chances
from jetsel.wire import Criterion

CALIBRATED = (
    "chain",
    "chain-right",
    "cascade",
    "cascade-averaged",
    "cascade-skipping",
    "embedding",
    "boosted",
)  # what a family with a calibration may offer
CRITERIA: tuple[Criterion, ...] = ("top1", "top5")


def catalogue(
    models: Sequence[str], calibration: Calibration | None, own: Mapping[str, OwnPolicy]
) -> dict[Criterion, dict[str, Policy]]:
    """Return every policy of a family by criterion and name.

    models: the family's, cheapest first. `single:<model>` always; where the family is calibrated what its calibration
    fitted; and the owner's cascades whose models are all of this family.
    """
    offered: dict[Criterion, dict[str, Policy]] = {}
    for criterion in CRITERIA:
        policies: dict[str, Policy] = {f"single:{model}": Single(model) for model in models}
        if calibration is not None:
            policies |= {policy.name: policy for policy in calibrated(calibration, criterion)}
        for name, policy in own.items():
            if set(policy.models) <= set(models):
                policies[name] = Cascade.of(name, policy.models, policy.thresholds)
        offered[criterion] = policies
    return offered


def calibrated(calibration: Calibration, criterion: Criterion) -> Iterator[Policy]:
    """Give each policy that the calibration fitted for this criterion."""
    features = calibration.features
    rungs = calibration.cascades[criterion]
    cascade = Cascade.of("cascade", [r.model for r in rungs], [r.threshold for r in rungs[:-1]])
    yield ChainPolicy("chain", chain_from(calibration, criterion, "optimum"), features)
    yield ChainPolicy("chain-right", chain_from(calibration, criterion, "right"), features)
    yield cascade
    if criterion in calibration.averaged:
        rungs = calibration.averaged[criterion]
        thresholds = [r.threshold for r in rungs[:-1]]
        yield AveragedCascade.of("cascade-averaged", [r.model for r in rungs], thresholds, criterion)
    if criterion in calibration.skip:
        skip = calibration.skip[criterion]
        sure = Shares(calibration.points, calibration.sure[criterion], skip.k)
        scaling = Scaling(calibration.minimum, calibration.maximum)
        yield SkippingCascade("cascade-skipping", cascade, sure, scaling, skip.share, features)
    yield from _weighing(calibration, criterion)


def _weighing(calibration: Calibration, criterion: Criterion) -> Iterator[Policy]:
    models = tuple(calibration.model_sha256)
    costs = np.array([calibration.costs[model] for model in models])
    if criterion in calibration.embedding:
        assert calibration.embeddings is not None
        weighing = calibration.embedding[criterion]
        shares = Shares(calibration.embeddings, calibration.right[criterion], weighing.k or 1)
        after = np.where(np.arange(len(models)) == 0, 0.0, costs)  # the cheapest has run by then
        yield EmbeddingPolicy("embedding", models, shares.of, after, weighing.price)
    if criterion in calibration.boosted:
        trees = functools.partial(chances, calibration.trees[criterion])
        price = calibration.boosted[criterion].price
        yield BoostedPolicy("boosted", models, trees, costs, price, calibration.features)


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
