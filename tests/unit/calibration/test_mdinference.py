"""The simulation of MDInference gives the paper's figures, for a seed."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.papers.mdinference import figures
from calibration.papers.mdinference import published as paper
from calibration.papers.mdinference.selections import SELECTIONS, spanning
from calibration.papers.mdinference.simulate import simulate
from calibration.papers.mdinference.stages import Models

SEED, REQUESTS = 7, 300_000
TOLERANCES = {"random": (0.5, 0.5)}  # its pool is a guess that agrees: paper.RANDOM_POOL
CHANCE = np.random.default_rng


def test_table_iv_is_the_paper_s() -> None:
    found = figures.table_iv(REQUESTS, SEED)
    for network, rows in paper.TABLE_IV.items():
        for policy, (reliance, accuracy) in rows.items():
            row, (off, away) = found[network][policy], TOLERANCES.get(policy, (0.1, 0.3))
            assert row["reliance_pct"] == pytest.approx(reliance, abs=off), (network, policy)
            assert row["accuracy_pct"] == pytest.approx(accuracy, abs=away), (network, policy)
            assert row["paper"] == {"reliance_pct": reliance, "accuracy_pct": accuracy}


def test_the_latency_saved_beside_greedy_is_the_paper_s() -> None:
    (row,) = (row for row in figures.by_sla(20_000, SEED) if row["sla_ms"] == 115)
    assert row["less_latency_pct"] == pytest.approx(42, abs=2)
    assert row["mdinference"]["attainment_pct"] > row["greedy"]["attainment_pct"]


def test_a_fictional_twin_of_the_best_model_draws_requests_by_its_accuracy() -> None:
    (row,) = (row for row in figures.by_sla(20_000, SEED) if row["sla_ms"] == 300)
    large, twin = 82.6, 50.0
    expected = (large**2 + twin**2) / (large + twin)
    assert row["fictional mdinference"]["accuracy_pct"] == pytest.approx(expected, abs=1.0)
    assert row["fictional related-accurate"]["accuracy_pct"] == pytest.approx(large, abs=1.0)


@pytest.mark.parametrize("policy", SELECTIONS)
def test_every_policy_chooses_models_that_there_are(policy: str) -> None:
    models = Models(np.array([0.5, 0.7]), np.array([5.0, 50.0]), np.array([1.0, 4.0]))
    outcome = simulate(models, np.array([10.0, 500.0, 0.0]), 100.0, policy, CHANCE(1))
    assert set(outcome.chosen.tolist()) <= {0, 1}
    assert outcome.on_time.tolist() == [True, False, True]
    assert outcome.duplicated(0.4) == pytest.approx((outcome.models.accuracy[outcome.chosen[[0, 2]]].sum() + 0.4) / 3)
    assert outcome.usage().sum() == pytest.approx(1)


def test_the_spanning_subset_leaves_out_what_is_never_chosen() -> None:
    names = [list(paper.TABLE_III)[i] for i in spanning(paper.models(paper.TABLE_III))]
    assert "InceptionResNetV2" not in names, "V-A says so, too"
    assert {"NasNet Large", "MobileNetV1 0.25"} <= set(names)
