"""Which calibrations contradict themselves, and which do not belong to what is served."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from jetsel.errors import CalibrationError
from jetsel.premodel import Calibration, Rung, Skip, Weighing, chain_from, check
from jetsel.premodel.artefact import verify


def test_the_example_is_whole(calibration: Calibration) -> None:
    verify(calibration)


ENERGIES = {"small": 9.0, "middle": 2.0, "large": 30.0}


def test_what_models_cost_is_of_the_objective(calibration: Calibration) -> None:
    assert calibration.costs == calibration.costs_ms
    by_energy = msgspec.structs.replace(calibration, objective="energy", energies_mj=ENERGIES)
    verify(by_energy)
    assert by_energy.costs == ENERGIES
    # All three are right on the second photograph: the optimum is the fastest, or the most frugal.
    assert [
        chain_from(one, "top1", "optimum").choose(np.array([3.0, -1.0], np.float32)).model
        for one in (msgspec.structs.replace(calibration, k=1), msgspec.structs.replace(by_energy, k=1))
    ] == ["small", "middle"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model_sha256": {}}, "names no model"),
        ({"features": ("contrast", "contrast")}, "none twice"),
        ({"temperatures": {"small": 1.0}}, "temperatures"),
        ({"costs_ms": {"small": 1.0, "middle": 2.0, "huge": 3.0}}, "costs_ms"),
        ({"k": 5}, "k is 5, but it has 4 photographs"),
        ({"minimum": np.zeros(3, np.float32)}, "minimum and maximum must be"),
        ({"minimum": np.full(2, 99, np.float32)}, "above its maximum"),
        ({"minimum": np.full(2, np.nan, np.float32)}, "no number"),
        ({"points": np.zeros((4, 3), np.float32)}, "points must be"),
        ({"points": np.full((4, 2), np.nan, np.float32)}, "not finite"),
        ({"points": np.full((4, 2), 1.5, np.float32)}, "points must be scaled"),
        ({"right": {"top1": np.zeros((4, 3), bool)}}, "cascades must name exactly"),
        ({"default_policy": {"top1": "chain"}}, "default_policy must name exactly"),
        ({"cascades": {"top1": (Rung("small", 0.5),), "top5": (Rung("small", 0.0),)}}, "top1's cascade must accept"),
        ({"cascades": {"top1": (), "top5": (Rung("small", 0.0),)}}, "top1's cascade must accept"),
        ({"cascades": {"top1": (Rung("huge", 0.0),), "top5": (Rung("small", 0.0),)}}, "names huge"),
        ({"right": {"top1": np.zeros((4, 3), bool), "top5": np.zeros((4, 2), bool)}}, r"right\['top5'\] must be"),
        ({"links": {"top3": ("small",)}}, "links names a criterion"),
        ({"links": {"top1": ("small", "small")}}, "none twice"),
        ({"links": {"top1": ("huge",)}}, "top1's chain names huge"),
        ({"averaged": {"top1": (Rung("small", 0.5),)}}, "top1's averaged cascade must accept"),
        ({"skip": {"top1": Skip(3, 0.5)}}, "sure and skip"),
        ({"skip": {"top1": Skip(9, 0.5)}, "sure": {"top1": np.zeros((4, 1), bool)}}, "skip asks 9"),
        ({"skip": {"top1": Skip(3, 0.5)}, "sure": {"top1": np.zeros((4, 2), bool)}}, "sure.*must be"),
        ({"embedding": {"top1": Weighing(0.5, 3)}}, "embeddings must be"),
        ({"embedding": {"top1": Weighing(0.5)}, "embeddings": np.zeros((4, 2), np.float32)}, "embedding asks"),
        ({"embedding": {"top1": Weighing(0.5, 9)}, "embeddings": np.zeros((4, 2), np.float32)}, "embedding asks"),
        ({"boosted": {"top1": Weighing(0.5)}}, "trees and boosted"),
        ({"boosted": {"top1": Weighing()}}, "a weighing has no price"),
        ({"boosted": {"top1": Weighing(price_per_mj=0.5)}}, "not one of time"),
        ({"boosted": {"top1": Weighing(0.5)}, "objective": "energy", "energies_mj": ENERGIES}, "not one of energy"),
        ({"energies_mj": {"small": 1.0}}, "energies_mj must name exactly"),
        ({"energies_half_mj": {"small": 1.0}}, "energies_half_mj must name exactly"),
        ({"objective": "energy"}, "energy is its objective, and energies_mj names no model"),
    ],
)
def test_a_contradiction_is_named(calibration: Calibration, change: dict[str, Any], reason: str) -> None:
    with pytest.raises(CalibrationError, match=reason):
        verify(msgspec.structs.replace(calibration, **change))


def test_what_it_was_made_for_is_accepted_and_more_models_too(calibration: Calibration) -> None:
    check(calibration, "a" * 64, calibration.model_sha256, "f" * 64, 64)
    check(calibration, "a" * 64, calibration.model_sha256 | {"extra": "9" * 64}, "f" * 64, 64)


def test_every_difference_is_named_with_the_repair(calibration: Calibration) -> None:
    with pytest.raises(CalibrationError) as raised:
        check(calibration, "b" * 64, {"small": "1" * 64, "middle": "7" * 64}, "e" * 64, 96)
    message = str(raised.value)
    assert "its labels had hash aaaaaaaaaaaa, now bbbbbbbbbbbb" in message
    assert "its table of features had hash ffffffffffff, now eeeeeeeeeeee" in message
    assert "model middle had hash 222222222222, now 777777777777" in message
    assert "model large is not there" in message
    assert "photographs were decoded for 64 px, now for 96" in message
    assert "model small" not in message
    assert "Recalibrate" in message
