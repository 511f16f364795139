"""Cross-validation: nothing is judged by what it was fitted on, and operating points are what policies then give."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from jetsel.artefact.calibration import Calibration
from jetsel.calibrate.fit.chain import try_readings
from jetsel.calibrate.fit.cross_validation import (
    CrossValidated,
    Learned,
    assemble,
    cross_validate,
    draft_calibration,
    learn,
)
from jetsel.calibrate.fit.goal import Goal
from jetsel.calibrate.fit.temperature import fit_temperatures
from jetsel.calibrate.record.recording import Objective, Recording
from jetsel.calibrate.record.replay import Outcomes, replay_all
from jetsel.features.near_duplicates import assign_folds
from jetsel.policies.cascade import ChosenPoints
from jetsel.policies.chain import ChosenReading
from jetsel.policies.kind import Table
from jetsel.policies.registry import KIND, KINDS, catalogue
from tests.unit.calibrate.answered import answered
from tests.unit.calibrate.recorded import COSTS_MS, ENERGIES, bound, drawn

FOLDS = 4
HASHES = {model: letter * 64 for model, letter in zip(COSTS_MS, "abc", strict=True)}
FEATURES_MS = 0.5


def recorded(photographs: int = 240) -> Recording:
    draw = np.random.default_rng(3)
    embeddings = draw.normal(size=(photographs, 4)).astype(np.float16)
    features = answered(("a",), photographs)
    return dataclasses.replace(
        drawn(11, photographs),
        embeddings=embeddings,
        features=features.features,
        feature_names=features.feature_names,
    )


def parted(recording: Recording) -> tuple[Learned, Recording, Table]:
    """What three quarters taught, and the fourth that it has not seen."""
    table, rows = recording.table(fit_temperatures(recording)), np.arange(len(recording.classes))
    held = rows[rows % 4 == 0]
    return learn(table.take(rows[rows % 4 > 0]), KINDS), recording.take(held), table.take(held)


def put_together(recording: Recording, learned: Learned, **chosen: Any) -> Calibration:
    unfitted = draft_calibration(bound(HASHES), recording, fit_temperatures(recording))
    return assemble(unfitted, learned, {"cascade": ChosenPoints(0, (0,)), "multiplexer": 0} | chosen, KINDS)


def replayed(calibration: Calibration, name: str, held: Recording) -> Outcomes:
    """What the policy gives, its features included and the choice left out."""
    run = replay_all(catalogue([], calibration)[name], held, range(len(held.classes)), calibration.temperatures, "l")
    return Outcomes.of(held, run.answered == held.classes, run.ran, FEATURES_MS * bool(run.features))


@pytest.mark.parametrize(("way", "objective"), [("cascade", "time"), ("multiplexer", "energy")])
def test_an_operating_point_is_what_the_assembled_policy_gives_on_photographs_it_has_not_seen(
    way: str, objective: Objective
) -> None:
    metered = dataclasses.replace(recorded(), energies=ENERGIES, objective=objective)
    learned, held, table = parted(metered)
    points = [Outcomes.of(held, one.correct, one.ran) for one in KIND[way].try_points(learned[way], table)]
    assert len({(point.correct.sum(), point.time_ms.sum()) for point in points}) > 1
    for place in range(0, len(points), max(1, len(points) // 7)):
        chosen = ChosenPoints(place, ()) if way == "cascade" else place
        given = replayed(put_together(metered, learned, **{way: chosen}), way, held)
        np.testing.assert_array_equal(given.correct, points[place].correct)
        np.testing.assert_allclose(given.time_ms, points[place].time_ms)
        assert given.energy_mj is not None
        assert points[place].energy_mj is not None
        np.testing.assert_allclose(given.energy_mj, points[place].energy_mj)


def test_a_reading_at_a_price_is_what_the_assembled_chain_gives_on_images_that_it_has_not_seen() -> None:
    whole = recorded()
    learned, held, table = parted(whole)
    tried = try_readings(learned["chain"], table)
    for reading, one in tried.items():
        if not reading.k:
            continue
        for place in (3, 10, 17):
            chosen = ChosenReading(reading.features, reading.k, place, (0,))
            given = replayed(put_together(whole, learned, chain=chosen), "chain", held)
            np.testing.assert_array_equal(given.correct, one.correct[:, place])
            np.testing.assert_allclose(given.time_ms - FEATURES_MS, one.ran[:, place] @ held.costs())


def cross_validated(recording: Recording, fold_of: np.ndarray) -> CrossValidated:
    unfitted = draft_calibration(bound(HASHES), recording, dict.fromkeys(COSTS_MS, 1.0))
    return cross_validate(recording, unfitted, fold_of, Goal(), lambda _: FEATURES_MS, lambda *_: None, KINDS)


def test_a_fold_is_judged_by_what_the_others_taught() -> None:
    """With the labels of one fold changed, what is learned for it, and so what it costs, stays as it was."""
    recording = recorded(120)
    fold_of = assign_folds(np.arange(120), FOLDS, 0)
    shuffled = recording.classes.copy()
    shuffled[fold_of == 2] = (shuffled[fold_of == 2] + 1) % 7
    one, other = (
        cross_validated(dataclasses.replace(recording, classes=classes), fold_of)
        for classes in (recording.classes, shuffled)
    )
    for way, points in one.points.items():
        for point, of_shuffled in zip(points, other.points[way], strict=True):
            if way != "chain":  # whose reading is chosen once, on all folds
                np.testing.assert_array_equal(point.time_ms[fold_of == 2], of_shuffled.time_ms[fold_of == 2])
    assert any(
        (point.time_ms != of_shuffled.time_ms).any()
        for way in ("cascade", "multiplexer")
        for point, of_shuffled in zip(one.points[way], other.points[way], strict=True)
    ), "the other folds have learned from it"


def test_the_best_single_model_is_the_cheapest_of_the_most_accurate() -> None:
    recording = recorded(40)
    same = dataclasses.replace(recording, logits=np.stack([recording.logits[0], *2 * [recording.logits[2]]]))
    assert same.best_single == "m"
