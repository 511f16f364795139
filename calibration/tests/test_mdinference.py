"""MDInference: the paper's figures for a seed, its three stages by hand, its networks, and what its policy draws."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.papers.mdinference import figures
from calibration.papers.mdinference import published as paper
from calibration.papers.mdinference.drawn import NAME, drawn
from calibration.papers.mdinference.networks import RecordedTimes, read
from calibration.papers.mdinference.selections import SELECTIONS
from calibration.papers.mdinference.simulate import simulate
from calibration.papers.mdinference.stages import Models, base, chances, explored, mdinference, pick, utilities
from jetsel.base.errors import ConfigError
from jetsel.policies.deadline import Deadline
from jetsel.policies.front import Front, Point
from jetsel.policies.policy import Evidence, Outlook
from jetsel.policies.single import Single
from jetsel.policies.with_edge import edge_point

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


@pytest.mark.parametrize("policy", SELECTIONS)
def test_every_policy_chooses_models_that_there_are(policy: str) -> None:
    models = Models(np.array([0.5, 0.7]), np.array([5.0, 50.0]), np.array([1.0, 4.0]))
    outcome = simulate(models, np.array([10.0, 500.0, 0.0]), 100.0, policy, CHANCE(1))
    assert set(outcome.chosen.tolist()) <= {0, 1}
    assert outcome.on_time.tolist() == [True, False, True]
    assert outcome.duplicated(0.4) == pytest.approx((outcome.models.accuracy[outcome.chosen[[0, 2]]].sum() + 0.4) / 3)
    assert outcome.usage().sum() == pytest.approx(1)


FAST, MIDDLE, TWIN, SLOW = range(4)
MODELS = Models(np.array([0.4, 0.7, 0.6, 0.8]), np.array([5.0, 20.0, 22.0, 100.0]), np.array([1.0, 4.0, 1.0, 10.0]))


@pytest.mark.parametrize(
    ("budget_ms", "expected"),
    [(200.0, SLOW), (110.0, MIDDLE), (24.1, MIDDLE), (24.0, TWIN), (7.0, FAST), (3.0, FAST), (-50.0, FAST)],
)
def test_the_base_is_the_most_accurate_that_fits_or_the_fastest(budget_ms: float, expected: int) -> None:
    assert base(np.array([budget_ms]), MODELS).tolist() == [expected]


def test_the_exploration_set_lies_within_one_deviation_of_the_base() -> None:
    assert explored(np.array([MIDDLE, TWIN, SLOW]), MODELS).tolist() == [
        [False, True, True, False],
        [False, False, True, False],
        [False, False, False, True],
    ]


def test_utility_is_accuracy_by_what_is_left_and_never_negative() -> None:
    found = utilities(np.array([40.0, 20.0]), MODELS)
    assert found[0] == pytest.approx([0.4 * 34 / 35, 0.7 * 16 / 20, 0.6 * 17 / 18, 0.0])
    assert found[1] == pytest.approx([0.4 * 14 / 15, 0.0, 0.0, 0.0])


def test_the_explored_are_picked_by_their_share_of_the_utility() -> None:
    (found,) = chances(np.array([40.0]), MODELS)
    middle, twin = 0.7 * 16 / 20, 0.6 * 17 / 18
    assert found == pytest.approx([0, middle / (middle + twin), twin / (middle + twin), 0])
    assert pick(np.array([[0.0, 0.5, 0.5, 0.0]] * 3), np.array([0.0, 0.49, 0.5])).tolist() == [MIDDLE, MIDDLE, TWIN]


positive = st.floats(0.01, 1000)


@given(
    st.lists(st.tuples(st.floats(0.01, 0.99), positive, st.floats(0, 100)), min_size=1, max_size=8),
    st.floats(-100, 3000),
    st.floats(0, 1, exclude_max=True),
)
def test_what_is_picked_is_explored_and_useful_where_anything_is(
    known: list[tuple[float, float, float]], budget_ms: float, draw: float
) -> None:
    models = Models(*np.array(known).T)
    budgets, draws = np.array([budget_ms]), np.array([draw])
    (picked,) = mdinference(budgets, models, draws)
    bases = base(budgets, models)
    assert explored(bases, models)[0, picked]
    assert utilities(budgets, models)[0, picked] > 0 or picked == bases[0]
    assert chances(budgets, models).sum() == pytest.approx(1)


CHANCE = np.random.default_rng


@pytest.mark.parametrize(
    ("text", "mean_ms"),
    [("normal:100,20", 100.0), ("lognormal:50,0.5", 50 * np.exp(0.125)), ("two-state:30,0,200,0,0.05,0.2", 64.0)],
)
def test_a_network_is_what_it_says(text: str, mean_ms: float) -> None:
    times_ms = read(text).draw(200_000, CHANCE(3))
    assert times_ms.shape == (200_000,)
    assert times_ms.min() >= 0
    assert times_ms.mean() == pytest.approx(mean_ms, rel=0.03)


def test_times_with_their_bytes_tell_what_more_bytes_take(tmp_path: Path) -> None:
    path = tmp_path / "link.txt"
    path.write_text(
        "".join(f"{30 + size / 1000 + 2 * (i % 2)} {size}\n" for i, size in enumerate([10_000, 20_000] * 9))
    )
    network = read(str(path))
    assert isinstance(network, RecordedTimes)
    times_ms = network.draw(18, CHANCE(1))
    for sent_bytes, expected_ms in ((10_000, 40), (15_000, 46), (20_000, 52), (90_000, 52)):
        assert (times_ms + network.extra_ms(sent_bytes)).mean() == pytest.approx(expected_ms)


@pytest.mark.parametrize(
    "text", ["normal:1", "normal:-1,2", "lognormal:a,b", "two-state:1,1,1,1,0,1", "nowhere.txt", "normal:nan,1"]
)
def test_a_network_that_is_none_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ConfigError, match="examples: university"):
        read(text)


HERE = {"s": (5.0, 0.5), "m": (5.0, 0.5)}
POINTS = tuple(Point(Single(name), right, 5.0, {name: 1.0}, 0.0, None) for name, right in (("s", 0.4), ("m", 0.6)))


def first_models(there: dict[str, tuple[float, float]], network_ms: tuple[float, float] | None) -> set[tuple[str, ...]]:
    """Return what 60 requests with 100 ms run at first."""
    edge = Front(tuple(edge_point(name, 0.8 + place / 10) for place, name in enumerate(there)))
    timed = Deadline(Front(POINTS[1:]), Single("m"), Front(POINTS[1:]), edge, "always", "always")
    policy = drawn(timed, POINTS, np.random.default_rng(2020))
    assert policy.name == NAME
    ahead = Outlook(100.0, HERE | there, network_ms)
    return {next(policy(Evidence(None, None, ahead))).models for _ in range(60)}


def test_models_of_about_the_same_time_share_the_requests() -> None:
    assert first_models({}, None) == {("s",), ("m",)}
    twins = {"edge:l": (60.0, 3.0), "edge:xl": (60.0, 3.0)}
    assert first_models(twins, (30.0, 1.0)) == {("m", "edge:l"), ("m", "edge:xl")}


def test_a_reduced_photograph_is_offered_only_where_the_whole_one_would_come_too_late() -> None:
    reduced = {"edge:l@224": (59.0, 3.0)}
    assert first_models({"edge:l": (60.0, 3.0)} | reduced, (30.0, 1.0)) == {("m", "edge:l")}
    assert first_models({"edge:l": (80.0, 3.0)} | reduced, (30.0, 1.0)) == {("m", "edge:l@224")}


def test_where_no_model_can_run_the_first_path_says_why() -> None:
    timed = Deadline(Front(POINTS), Single("m"), Front(POINTS), Front(), "always", "always")
    steps = drawn(timed, POINTS, np.random.default_rng(2020))(Evidence(None, None, Outlook(100.0, {}, None)))
    assert next(steps).models == ("m",)
