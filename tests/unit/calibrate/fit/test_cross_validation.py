"""Cross-validation: nothing is judged by what it was fitted on, and operating points are what policies then give."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from jetsel.artefact.calibration import Calibration
from jetsel.calibrate.fit.assemble import Identity, Learned, assemble, fit_temperatures, learn, try_out
from jetsel.calibrate.fit.cross_validation import best_single, cross_validate
from jetsel.calibrate.fit.folds import nearest_in_other_folds
from jetsel.calibrate.fit.goal import Goal, Outcomes
from jetsel.calibrate.record.recording import Objective, Recording
from jetsel.calibrate.record.replay import replay_all
from jetsel.features.near_duplicates import assign_folds
from jetsel.policies.front import NAME as FRONT
from jetsel.policies.kind import ChainPlan
from jetsel.policies.registry import KIND, KINDS, catalogue
from tests.unit.calibrate.recorded import (
    CHOOSER_W,
    COSTS_MS,
    ENERGIES_MJ,
    drawn,
)

FOLDS = 4
PLAN = ChainPlan(("contrast", "hue1"), k=5, features_ms=0.5)
HASHES = {model: letter * 64 for model, letter in zip(COSTS_MS, "abc", strict=True)}
IDENTITY = Identity("drawn", "d" * 64, HASHES, "t", 64, 4096)


def recorded(photographs: int = 120) -> Recording:
    draw = np.random.default_rng(3)
    embeddings = draw.normal(size=(photographs, 4)).astype(np.float16)
    return dataclasses.replace(drawn(11, photographs), embeddings=embeddings)


def parted(recording: Recording) -> tuple[Learned, Recording]:
    """What three quarters taught, and the fourth that it has not seen."""
    rows = np.arange(len(recording.classes))
    train, held = recording.take(rows[rows % 4 > 0]), recording.take(rows[rows % 4 == 0])
    return learn(train, PLAN, fit_temperatures(train), KINDS), held


def put_together(learned: Learned, **places: int) -> Calibration:
    chosen: dict[str, Any] = dict.fromkeys((kind.name for kind in KINDS if kind.name != "chain"), 0)
    return assemble(IDENTITY, learned, chosen | {FRONT: [0]} | places)


def replayed(calibration: Calibration, name: str, held: Recording) -> Outcomes:
    """What the policy gives, its features included and the choice left out."""
    policy = catalogue([], calibration)[name]
    run = replay_all(policy, held, range(len(held.classes)), calibration.temperatures, held.models[-1])
    features_ms = PLAN.features_ms * bool(run.features)
    energy_mj = run.ran @ held.costs("energy") + features_ms * CHOOSER_W if held.knows_energy else None
    return Outcomes(run.answered == held.classes, run.models_ms + features_ms, energy_mj)


@pytest.mark.parametrize(
    ("way", "objective"),
    [
        ("cascade", "time"),
        ("cascade-averaged", "energy"),
        ("multiplexer", "energy"),
    ],
)
def test_an_operating_point_is_what_the_assembled_policy_gives_on_photographs_it_has_not_seen(
    way: str, objective: Objective
) -> None:
    metered = dataclasses.replace(recorded(), energies_mj=ENERGIES_MJ, chooser_w=CHOOSER_W, objective=objective)
    learned, held = parted(metered)
    points = try_out(KIND[way], learned, held)
    assert len({(point.correct.sum(), point.time_ms.sum()) for point in points}) > 1
    for place in range(0, len(points), max(1, len(points) // 7)):
        given = replayed(put_together(learned, **{way: place}), way, held)
        np.testing.assert_array_equal(given.correct, points[place].correct)
        np.testing.assert_allclose(given.time_ms, points[place].time_ms)
        assert given.energy_mj is not None
        assert points[place].energy_mj is not None
        np.testing.assert_allclose(given.energy_mj, points[place].energy_mj)


def test_a_fold_is_judged_by_what_the_others_taught() -> None:
    """With the labels of one fold changed, what is learned for it, and so what it costs, stays as it was."""
    recording = recorded()
    fold_of = assign_folds(np.arange(120), FOLDS, 0)
    shuffled = recording.classes.copy()
    shuffled[fold_of == 2] = (shuffled[fold_of == 2] + 1) % 7
    one, other = (
        cross_validate(
            dataclasses.replace(recording, classes=classes),
            fold_of,
            nearest_in_other_folds(recording.features, fold_of, PLAN.k),
            PLAN,
            Goal(),
            IDENTITY,
            lambda *_: None,
        )
        for classes in (recording.classes, shuffled)
    )
    for way, points in one.points.items():
        for point, of_shuffled in zip(points, other.points[way], strict=True):
            np.testing.assert_array_equal(point.time_ms[fold_of == 2], of_shuffled.time_ms[fold_of == 2])
    chain, of_shuffled_chain = one.runs["chain"], other.runs["chain"]
    np.testing.assert_array_equal(chain.ran[fold_of == 2], of_shuffled_chain.ran[fold_of == 2])
    assert any(
        (point.time_ms != of_shuffled.time_ms).any()
        for way in ("cascade", "multiplexer")
        for point, of_shuffled in zip(one.points[way], other.points[way], strict=True)
    ), "the other folds have learned from it"


def test_the_best_single_model_is_the_cheapest_of_the_most_accurate() -> None:
    recording = recorded(40)
    same = dataclasses.replace(recording, logits=np.stack([recording.logits[0], *2 * [recording.logits[2]]]))
    model, outcomes = best_single(same)
    assert model == "m"
    np.testing.assert_array_equal(outcomes.time_ms, np.full(40, 3.0))


def test_a_model_that_is_always_right_has_the_temperature_one() -> None:
    recording = drawn(3, photographs=60)
    agreed = dataclasses.replace(recording, classes=recording.logits[1].argmax(axis=1))
    temperatures = fit_temperatures(agreed)
    assert temperatures["m"] == 1.0
    assert temperatures["s"] != 1.0
