"""Tuned techniques and links of the chain; and the policy `embedding`, replayed by the product's own replay."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from numpy.typing import NDArray

from calibration.papers.taylor.links import greedy
from calibration.papers.taylor.techniques import Technique, techniques, tuned
from calibration.starter.embedding import EmbeddingKind, Weighing
from jetsel.artefact.calibration import PolicyPart
from jetsel.calibrate.fit.cross_validation import assemble, draft_calibration, learn
from jetsel.calibrate.fit.temperature import fit_temperatures
from jetsel.calibrate.record.replay import replay_all
from jetsel.policies.policy import Evidence, Prediction
from jetsel.policies.registry import catalogue
from tests.unit.calibrate.recorded import COSTS_MS, bound, drawn
from tests.unit.policies.stepping import ended


def places(n: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Images at three places on a line, and at each place another model that is right, with noise in one of ten."""
    draw = np.random.default_rng(seed)
    place = draw.integers(0, 3, n)
    right = np.eye(3, dtype=bool)[place] ^ (draw.random((n, 3)) < 0.1)
    at = place + draw.uniform(-0.1, 0.1, n)
    return np.column_stack([at, (at - 1) ** 2, draw.random(n)]), right


@pytest.mark.parametrize("technique", techniques(), ids=lambda one: f"{one.name}, {one.reads}")
def test_each_technique_learns_what_its_inputs_tell_and_its_probabilities_are_shares(technique: Technique) -> None:
    (known, right), (new, due) = places(1200, 1), places(1200, 2)
    found = tuned(technique, known, right, np.arange(1200) % 10, new)
    for likely, truth in ((found.held_out, right), (found.others, due)):
        assert ((likely > 0.5) == truth).mean() > 0.85
        np.testing.assert_allclose(likely.mean(axis=0), truth.mean(axis=0), atol=0.06)


def test_what_is_held_out_teaches_nothing() -> None:
    """In each of three folds every place is right by chance: what a fold says of another is worth nothing."""
    draw = np.random.default_rng(3)
    known, right = draw.random((1200, 2)), draw.random((1200, 2)) < 0.5
    found = tuned(techniques()[0], known, right, np.arange(1200) % 10, known)
    assert abs(((found.held_out > 0.5) == right).mean() - 0.5) < 0.07


def test_links_after_the_first_are_larger_and_most_accurate_on_what_fails() -> None:
    right = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 0], [0, 0, 1, 0]], bool)
    assert greedy(right, 0) == [0, 1, 2]
    assert greedy(right, 1) == [1, 2, 3]
    assert greedy(right, 2) == [2, 3]


KINDS = [EmbeddingKind()]
IDENTITY = bound(dict.fromkeys(COSTS_MS, "a" * 64))


def test_an_operating_point_is_what_the_assembled_policy_gives_on_photographs_it_has_not_seen() -> None:
    embeddings = np.random.default_rng(3).normal(size=(120, 4)).astype(np.float16)
    recording = dataclasses.replace(drawn(11, 120), embeddings=embeddings)
    rows = np.arange(120)
    held = recording.take(rows[rows % 4 == 0])
    unfitted = draft_calibration(IDENTITY, recording, fit_temperatures(recording))
    table = recording.table(unfitted.temperatures)
    learned = learn(table.take(rows[rows % 4 > 0]), KINDS)
    points = KINDS[0].try_points(learned["embedding"], table.take(rows[rows % 4 == 0]))
    assert len({(point.correct.sum(), point.ran.sum()) for point in points}) > 1
    for place in range(0, len(points), len(points) // 7):
        calibration = assemble(unfitted, learned, {"embedding": place}, KINDS)
        policy = catalogue([], calibration, KINDS)["embedding"]
        run = replay_all(policy, held, range(len(held.classes)), calibration.temperatures, None)
        np.testing.assert_array_equal(run.answered == held.classes, points[place].correct)
        np.testing.assert_array_equal(run.ran, points[place].ran)
    assert learn(dataclasses.replace(table, embeddings=None), KINDS)["embedding"] is None


def test_the_shares_of_the_nearest_by_hand() -> None:
    """Rows 0 and 1 are nearest: s is right on both of them, m on one, l on both."""
    right = np.array([[1, 0, 1], [1, 1, 1], [0, 1, 0], [0, 0, 0]], bool)
    part = PolicyPart(Weighing(0.0, 2), {"points": np.array([[0], [1], [4], [9]], np.float16), "right": right})
    four = drawn(3, 4)
    nothing = draft_calibration(IDENTITY, four, dict.fromkeys(four.models, 1.0))
    policy = EmbeddingKind().make(part, nothing)["embedding"]
    steps = policy(Evidence(None, "l"))
    assert next(steps).models == ("s",)
    seen = Prediction("s", np.full(5, 0.2, np.float32), 0.2, np.array([0.4], np.float32))
    assert ended(steps, seen).because.endswith("right with a probability of 1.00")
    steps = policy(Evidence(None, "l"))
    next(steps)
    assert "it gave no embedding" in ended(steps, Prediction("s", np.full(5, 0.2, np.float32), 0.2)).because
