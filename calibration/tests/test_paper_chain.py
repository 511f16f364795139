"""The paper's chain as a policy that an experiment fits beside those of the product."""

from __future__ import annotations

import dataclasses

import numpy as np
from jetsel.calibrate.fit.folds import nearest_in_other_folds
from tests.unit.premodel.fitted import fit_chain

from calibration.papers.taylor.paper_chain import NAME, PaperChainKind
from jetsel.calibrate.fit.assemble import Identity, assemble, fit_temperatures, learn
from jetsel.calibrate.fit.cross_validation import cross_validate
from jetsel.calibrate.fit.goal import Goal
from jetsel.calibrate.record.recording import Recording
from jetsel.features import PAPER_SEVEN
from jetsel.policies.chain import ChainKind, ChainPolicy
from jetsel.policies.kind import ChainPlan
from jetsel.policies.registry import USUAL, catalogue
from jetsel.premodel import select_models
from tests.unit.calibrate.recorded import COSTS_MS, drawn

KINDS = [ChainKind(), PaperChainKind()]
PLAN = ChainPlan(("another",), k=1, theta_points=50.0)
COSTS = COSTS_MS | {"xl": 30.0}
IDENTITY = Identity("drawn", "d" * 64, dict.fromkeys(COSTS, "a" * 64), "t", 64, 4096)


def recorded() -> Recording:
    """Four models, the paper's features and another one: images lie apart."""
    draw = np.random.default_rng(5)
    three = drawn(11, 120)
    extra = three.logits[:1] + draw.normal(size=three.logits[:1].shape).astype(np.float32)
    return dataclasses.replace(
        three,
        models=tuple(COSTS),
        costs_ms=COSTS,
        logits=np.concatenate([three.logits, extra]),
        features=draw.random((120, 8), dtype=np.float32),
        feature_names=("another", *reversed(PAPER_SEVEN)),
    )


def test_it_has_its_seven_features_five_neighbours_and_three_links_whatever_the_plan_says() -> None:
    four = recorded()
    learned = learn(four, PLAN, fit_temperatures(four), KINDS)
    calibration = assemble(IDENTITY, learned, {})
    policies = catalogue([], calibration, KINDS)
    policy = policies[NAME]
    assert isinstance(policy, ChainPolicy)
    assert (policy.features, policy.chain.k, len(policy.models)) == (PAPER_SEVEN, 5, 3)
    assert len(policies["chain"].models) == 1  # theta is 50 points
    links, _ = select_models(four.right, four.costs(), four.models, -1.0)
    assert policy.models == links[:3]
    columns = [four.models.index(model) for model in links[:3]]
    own = fit_chain(links[:3], four.features[:, :0:-1], four.right[:, columns], four.costs()[columns], 5)
    for row in range(20):
        x = four.features_of(row, PAPER_SEVEN)
        assert policy.chain.choose(x) == own.choose(x)


def test_cross_validation_replays_a_policy_that_the_product_does_not_know() -> None:
    four = recorded()
    fold_of = np.arange(120) % 4
    near = nearest_in_other_folds(four.features[:, :1], fold_of, PLAN.k)
    kinds = [*USUAL, PaperChainKind()]
    tried = cross_validate(four, fold_of, near, PLAN, Goal(), IDENTITY, lambda *_: None, kinds)
    assert tried.runs[NAME].features == PAPER_SEVEN
    assert (tried.runs[NAME].ran.sum(axis=1) == 1).all()
    assert NAME not in catalogue(four.models, None)
