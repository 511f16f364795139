"""KNN, decision tree and SVM, level by level; and the policy `embedding`, replayed by the product's own replay."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from calibration.papers.taylor.techniques import Alternative, compare_techniques
from calibration.starter.embedding import EmbeddingKind, Weighing
from jetsel.artefact.calibration import Part
from jetsel.calibrate.fit.assemble import BoundIdentities, assemble, learn, try_out
from jetsel.calibrate.fit.temperature import fit_temperatures
from jetsel.calibrate.record.replay import replay_all
from jetsel.policies.policy import Evidence, Prediction
from jetsel.policies.registry import catalogue
from tests.unit.calibrate.recorded import COSTS_MS, drawn
from tests.unit.policies.stepping import ended

SPENT_MS = np.array([1.0, 2.0, 4.0, 8.0])
FEATURES_MS = 0.5


def compare(right: NDArray[np.bool_], votes: NDArray[np.bool_], fallback: int, k: int = 5) -> dict[str, Alternative]:
    """Thirty photographs at each of four places on a line, in three folds; one row of right and votes a place."""
    place = np.arange(120) % 4
    around = place[:, None] + np.random.default_rng(0).uniform(-0.1, 0.1, (120, 1))
    found = compare_techniques(
        around.astype(np.float32),
        votes[place],
        right[place],
        SPENT_MS[: votes.shape[1]],
        np.arange(120) // 4 % 3,
        k,
        FEATURES_MS,
        fallback,
    )
    return {alternative.name: alternative for alternative in found}


TOLD = np.eye(4, dtype=bool)  # at each place another model is right, and it alone


def test_all_techniques_and_all_mixes_are_right_where_features_tell() -> None:
    found = compare(TOLD, TOLD, fallback=3)
    mixes = [".".join(mix) for mix in itertools.product(("KNN", "DT", "SVM"), repeat=3)]
    assert list(found) == ["KNN", "DT", "SVM", *mixes]
    assert {alternative.accuracy for alternative in found.values()} == {1.0}
    for alternative in found.values():  # each model answers a quarter
        assert alternative.choice_ms > FEATURES_MS
        assert alternative.time_ms == pytest.approx(SPENT_MS.mean() + alternative.choice_ms)


def test_what_is_held_out_teaches_nothing() -> None:
    # In each of two folds the places mean the opposite: what the other teaches is always wrong.
    place, fold_of = np.arange(80) % 2, np.arange(80) // 2 % 2
    votes = np.eye(2, dtype=bool)[place ^ fold_of]
    found = compare_techniques(
        place[:, None].astype(np.float32), votes, votes, SPENT_MS[:2], fold_of, 5, FEATURES_MS, fallback=1
    )
    assert {alternative.accuracy for alternative in found} == {0.0}


KINDS = [EmbeddingKind()]
IDENTITY = BoundIdentities("drawn", "d" * 64, dict.fromkeys(COSTS_MS, "a" * 64), "t", 64, 4096)


def test_an_operating_point_is_what_the_assembled_policy_gives_on_photographs_it_has_not_seen() -> None:
    embeddings = np.random.default_rng(3).normal(size=(120, 4)).astype(np.float16)
    recording = dataclasses.replace(drawn(11, 120), embeddings=embeddings)
    rows = np.arange(120)
    held = recording.take(rows[rows % 4 == 0])
    table = recording.table(fit_temperatures(recording))
    learned = learn(table.take(rows[rows % 4 > 0]), KINDS)
    points = try_out(KINDS[0], learned, table.take(rows[rows % 4 == 0]))
    assert len({(point.correct.sum(), point.ran.sum()) for point in points}) > 1
    for place in range(0, len(points), len(points) // 7):
        calibration = assemble(IDENTITY, recording, learned, {"embedding": place})
        policy = catalogue([], calibration, KINDS)["embedding"]
        run = replay_all(policy, held, range(len(held.classes)), calibration.temperatures, None)
        np.testing.assert_array_equal(run.answered == held.classes, points[place].correct)
        np.testing.assert_array_equal(run.ran, points[place].ran)
    assert learn(dataclasses.replace(table, embeddings=None), KINDS).policies["embedding"] is None


def test_the_shares_of_the_nearest_by_hand() -> None:
    """Rows 0 and 1 are nearest: s is right on both of them, m on one, l on both."""
    right = np.array([[1, 0, 1], [1, 1, 1], [0, 1, 0], [0, 0, 0]], bool)
    part = Part(Weighing(0.0, 2), {"points": np.array([[0], [1], [4], [9]], np.float16), "right": right})
    four = drawn(3, 4)
    nothing = assemble(IDENTITY, four, learn(four.table(dict.fromkeys(four.models, 1.0)), []), {})
    policy = EmbeddingKind().make(part, nothing)["embedding"]
    steps = policy(Evidence(None, "l"))
    assert next(steps).models == ("s",)
    seen = Prediction("s", np.full(5, 0.2, np.float32), 0.2, np.array([0.4], np.float32))
    assert ended(steps, seen).because.endswith("right with a probability of 1.00")
    steps = policy(Evidence(None, "l"))
    next(steps)
    assert "it gave no embedding" in ended(steps, Prediction("s", np.full(5, 0.2, np.float32), 0.2)).because
