"""The paper's chain as a policy that an experiment fits beside those of the product."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from calibration.papers.taylor.algorithm1 import optimum_votes, select_models
from calibration.papers.taylor.paper_chain import NAME, PaperChainKind, VotingChain
from jetsel.artefact.calibration import Calibration
from jetsel.base.errors import InDoubtError
from jetsel.calibrate.fit.cross_validation import assemble, cross_validate, draft_calibration, learn
from jetsel.calibrate.fit.goal import Goal
from jetsel.calibrate.fit.temperature import fit_temperatures
from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import replay_all
from jetsel.features import PAPER_SEVEN
from jetsel.policies.cascade import CascadeKind
from jetsel.policies.policy import Evidence
from jetsel.policies.registry import catalogue
from jetsel.premodel import fit_scaling
from tests.unit.calibrate.recorded import COSTS_MS, bound, drawn

KINDS = [PaperChainKind()]
COSTS = COSTS_MS | {"xl": 30.0}
IDENTITY = bound(dict.fromkeys(COSTS, "a" * 64))


def fitted(recording: Recording, temperatures: dict[str, float]) -> Calibration:
    """The paper's chain, fitted on all images."""
    learned = learn(recording.table(temperatures), KINDS)
    return assemble(draft_calibration(IDENTITY, recording, temperatures), learned, {NAME: None}, KINDS)


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


def test_most_of_the_five_nearest_in_the_seven_features_elect_one_of_three_links() -> None:
    four = recorded()
    calibration = fitted(four, fit_temperatures(four))
    policy = catalogue([], calibration, KINDS)[NAME]
    assert isinstance(policy, VotingChain)
    assert (policy.features, policy.k, len(policy.models)) == (PAPER_SEVEN, 5, 3)
    links, _ = select_models(four.right, four.costs(), four.models, -1.0)
    assert policy.models == links[:3]
    columns = [four.models.index(model) for model in links[:3]]
    votes = optimum_votes(four.right[:, columns], four.costs()[columns])
    seven = four.features[:, :0:-1]
    scaled = fit_scaling(seven).apply(seven)
    run = replay_all(policy, four, range(120), calibration.temperatures, "xl")
    for row in range(120):
        near = np.argsort(((scaled - scaled[row]) ** 2).sum(axis=1), kind="stable")[:5]
        elected = [column for column, yes in zip(columns, votes[near].sum(axis=0), strict=True) if yes >= 3]
        assert run.in_doubt[row] == (not elected)
        assert np.flatnonzero(run.ran[row]).tolist() == [elected[0] if elected else four.models.index("xl")]
    assert 0 < run.in_doubt.sum() < 120


def test_in_doubt_and_without_a_fallback_it_refuses() -> None:
    four = recorded()
    nobody = dataclasses.replace(four, classes=(four.logits.argmin(axis=2)[0]))
    policy = catalogue([], fitted(nobody, dict.fromkeys(nobody.models, 1.0)), KINDS)[NAME]
    with pytest.raises(InDoubtError, match="no neighbours vote"):
        next(policy(Evidence(nobody.features_of(0, PAPER_SEVEN), None)))


def test_cross_validation_replays_a_policy_that_the_product_does_not_know() -> None:
    four = recorded()
    unfitted, kinds = draft_calibration(IDENTITY, four, fit_temperatures(four)), [CascadeKind(), PaperChainKind()]
    tried = cross_validate(four, unfitted, np.arange(120) % 4, Goal(), lambda _: 0.1, lambda *_: None, kinds)
    assert tried.runs[NAME].features == PAPER_SEVEN
    assert (tried.runs[NAME].ran.sum(axis=1) == 1).all()
    assert NAME not in catalogue(four.models, None)
