"""What the owner wants, on operating points small enough to judge by hand."""

from __future__ import annotations

import re

import numpy as np
import pytest

from jetsel.calibrate.goal import Goal, Outcomes, difference


def of(
    right: int, time_ms: float, photographs: int = 1000, *, from_end: bool = False, energy_mj: float | None = None
) -> Outcomes:
    """So many right answers, all of them first, or last."""
    correct = np.zeros(photographs, bool)
    correct[photographs - right if from_end else 0 : None if from_end else right] = True
    energies = None if energy_mj is None else np.full(photographs, energy_mj)
    return Outcomes(correct, np.full(photographs, time_ms), energies)


RIVAL = of(600, 10.0)
RIVAL_METERED = of(600, 10.0, energy_mj=50.0)


@pytest.mark.parametrize(
    ("goal", "points", "place"),
    [
        (Goal(), [of(590, 1), of(600, 4), of(610, 3), of(640, 8)], 2),  # 610: surely as good
        (Goal(), [of(590, 1), of(600, 4, from_end=True), of(640, 8)], 2),  # as good by chance: the surer one
        (Goal(), [of(580, 1), of(590, 4)], 1),  # none as accurate: the most accurate
        (Goal(), [of(602, 3), of(660, 8)], 1),  # surely better at less time comes before what only saves time
        (Goal(), [of(602, 3), of(660, 11)], 0),  # but not at more time
        (Goal(max_time_ms=0.5), [of(590, 1), of(600, 4)], 0),  # none fast enough: the fastest
        (Goal(min_accuracy=0.5), [of(400, 1), of(590, 2), of(640, 8)], 1),
        (Goal(min_accuracy=0.5, max_time_ms=3), [of(400, 1), of(590, 2), of(600, 4)], 1),
    ],
)
def test_the_best_point(goal: Goal, points: list[Outcomes], place: int) -> None:
    assert goal.best(points, RIVAL) == place


@pytest.mark.parametrize(
    ("goal", "candidate", "is_better", "reason"),
    [
        (Goal(), of(600, 5), True, r"0.00 ± .* and takes 50 % less time"),
        (Goal(), of(597, 5), False, "not enough to rule out a loss"),  # 3 less: 0.3 points, but it might be 0.6
        (Goal(), of(602, 10), False, r"may be chance; add about 900"),
        (Goal(), of(700, 12), False, "set --min-accuracy or --max-time-ms"),  # more accurate, but slower
        (Goal(max_time_ms=20), of(620, 12), True, "2.00 ± .* more accurate and takes 20 % more time"),
        (Goal(max_time_ms=11), of(620, 12), False, "exceeds your limit of 11 ms"),
        (Goal(), of(600, 9.7), False, "a saving below 5 %"),
        (Goal(max_time_ms=5), of(560, 4.9), True, "^only it keeps your limit of 5 ms"),
    ],
)
def test_better_by_more_than_the_noise(goal: Goal, candidate: Outcomes, is_better: bool, reason: str) -> None:
    found, said = goal.compare(candidate, RIVAL)
    assert found is is_better
    assert re.search(reason, said), said


def test_a_few_photographs_without_a_difference_prove_nothing() -> None:
    found, said = Goal().compare(of(6, 5, photographs=12), of(6, 10, photographs=12))
    assert not found
    assert "12 images are not enough" in said


def test_errors_that_fall_on_other_photographs_are_noise() -> None:
    rival, other = of(600, 10), of(600, 5, from_end=True)
    assert not Goal().compare(other, rival)[0]


def test_beside_a_model_that_gave_the_labels_a_little_disagreement_is_tolerated() -> None:
    assert Goal().best([of(980, 1), of(997, 3), of(1000, 9)], of(1000, 10.0)) == 1


def test_a_difference_by_hand() -> None:
    # 1, 0, 0, -1: mean 0, deviation sqrt(2/3), error half of it.
    ours, theirs = np.array([1, 1, 0, 0], bool), np.array([0, 1, 0, 1], bool)
    assert difference(ours, theirs) == pytest.approx((0.0, np.sqrt(2 / 3) / 2))


def metered(*points: tuple[int, float, float]) -> list[Outcomes]:
    return [of(right, time_ms, energy_mj=energy_mj) for right, time_ms, energy_mj in points]


@pytest.mark.parametrize(
    ("goal", "points", "place"),
    [
        (Goal("energy"), metered((610, 3, 30), (610, 8, 10), (640, 1, 90)), 1),  # the slower takes less energy
        (Goal(max_energy_mj=20), metered((590, 1, 5), (600, 9, 20), (640, 1, 90)), 1),
        (Goal("energy", max_time_ms=5), metered((640, 4, 40), (640, 3, 60), (650, 8, 1)), 0),  # of equals less energy
        (Goal(max_time_ms=5, max_energy_mj=20), metered((590, 1, 5), (600, 9, 10), (640, 1, 90)), 0),
        (Goal(max_time_ms=5, max_energy_mj=20), metered((640, 10, 20), (600, 5, 30)), 1),  # 2 and 1.5 times too much
        (Goal("energy", min_accuracy=0.5, max_time_ms=3), metered((590, 2, 30), (590, 1, 40), (640, 8, 20)), 0),
    ],
)
def test_the_best_point_by_energy(goal: Goal, points: list[Outcomes], place: int) -> None:
    assert goal.best(points, RIVAL_METERED) == place


@pytest.mark.parametrize(
    ("goal", "candidate", "is_better", "reason"),
    [
        (Goal("energy"), of(600, 90, energy_mj=25), True, "takes 50 % less energy"),
        (Goal("energy"), of(600, 5, energy_mj=60), False, "takes 20 % more energy, which may be chance"),
        (Goal(max_time_ms=5, max_energy_mj=20), of(620, 6, energy_mj=1), False, "exceeds your limit of 5 ms and 20 mJ"),
        (Goal(max_energy_mj=60), of(620, 90, energy_mj=55), True, "takes 800 % more time"),
        (Goal("energy", min_accuracy=0.5), of(560, 90, energy_mj=25), True, "4.00 ± .* less accurate"),
    ],
)
def test_better_by_energy(goal: Goal, candidate: Outcomes, is_better: bool, reason: str) -> None:
    found, said = goal.compare(candidate, RIVAL_METERED)
    assert found is is_better
    assert re.search(reason, said), said
