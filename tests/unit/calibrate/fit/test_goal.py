"""What the owner wants, on operating points small enough to judge by hand."""

import re

import numpy as np
import pytest

from jetsel.calibrate.fit.goal import Goal, paired_difference, standard_error
from jetsel.calibrate.record.replay import Outcomes


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
        (Goal(), [of(560, 1), *3 * [of(598, 3)], of(610, 5)], 2),  # of three alike, the first stands beside the 560
        (Goal(may_lose_points=2), [of(560, 1), *3 * [of(598, 3)], of(610, 5)], 1),
        (Goal(), [of(600, 4, from_end=True), of(600, 6, from_end=True)], 0),  # as good by chance: none is sure
        (Goal(), [of(580, 1), of(590, 4), of(640, 12)], 1),  # none as accurate in less time: the most accurate
        (Goal(), [of(640, 11), of(640, 12)], 0),  # none as cheap: the cheapest
        (Goal(max_time_ms=0.5), [of(590, 1), of(600, 4)], 0),  # none fast enough: the fastest
        (Goal(min_accuracy=0.5), [of(400, 1), of(590, 2), of(640, 8)], 1),
        (Goal(min_accuracy=0.5, max_time_ms=3), [of(400, 1), of(590, 2), of(600, 4)], 1),
    ],
)
def test_the_best_point(goal: Goal, points: list[Outcomes], place: int) -> None:
    assert goal.choose_point(points, RIVAL) == place


@pytest.mark.parametrize(
    ("goal", "candidate", "is_better", "reason"),
    [
        (Goal(), of(600, 5), True, r"50 % less time, is 0.00 points more .* and loses at most 0.16 points"),
        (Goal(), of(597, 5), True, "0.30 points less accurate .* and loses at most 0.58 points"),
        (Goal(), of(594, 5), False, r"it may lose 0.5 points \(--may-lose\)"),
        (Goal(may_lose_points=1.0), of(594, 5), True, "0.60 points less accurate"),
        (Goal(), of(597, 7.5), True, "takes 25 % less time"),
        (Goal(), of(602, 10), False, r"may be chance; add about 400"),
        (Goal(), of(700, 10), True, "10.00 points more accurate on these images, and gains at least 8.44 points"),
        (Goal(), of(600, 9.7), False, "a saving below 5 %"),
    ],
)
def test_what_takes_the_rivals_place(goal: Goal, candidate: Outcomes, is_better: bool, reason: str) -> None:
    found, said = goal.compare(candidate, RIVAL)
    assert found is is_better
    assert re.search(reason, said), said


@pytest.mark.parametrize(
    ("goal", "candidate", "is_better", "reason"),
    [
        (
            Goal(),
            of(700, 12),
            False,
            "set --min-accuracy or --max-time-ms to choose between",
        ),  # more accurate, but slower
        (Goal(max_time_ms=20), of(620, 12), True, "takes 20 % more time, is 2.00 points more"),
        (Goal(max_time_ms=20), of(600, 5), True, "takes 50 % less time"),
        (Goal(max_time_ms=11), of(620, 12), False, "exceeds your limit of 11 ms"),
        (Goal(max_time_ms=5), of(560, 4.9), True, "^it is the only one within your limit of 5 ms"),
    ],
)
def test_what_takes_the_rivals_place_under_a_limit(
    goal: Goal, candidate: Outcomes, is_better: bool, reason: str
) -> None:
    found, said = goal.compare(candidate, RIVAL)
    assert found is is_better
    assert re.search(reason, said), said


def test_a_loss_that_the_images_cannot_exclude_is_not_accepted_and_it_says_how_many_could() -> None:
    # 600 other images are right: no gain, 2.83 points of standard error, so 4.65 points may be lost, and 1 point is
    # excluded with 4.65^2 times the images.
    found, said = Goal().compare(of(600, 5, from_end=True), RIVAL)
    assert not found
    assert "more than 1.00 points; add about 20,000" in said
    assert not Goal().compare(of(6, 5, photographs=12), of(6, 10, photographs=12))[0]  # 12 without a difference


def test_the_reference_is_the_most_expensive_model_unless_another_is_surely_more_accurate() -> None:
    assert Goal().reference([of(500, 1), of(601, 5), RIVAL]) == 2
    assert Goal().reference([of(500, 1), of(620, 5), RIVAL]) == 1
    assert Goal().reference([of(620, 1), of(620, 5), RIVAL]) == 1


def test_a_point_is_taken_for_what_it_and_its_neighbours_give_and_only_if_it_saves() -> None:
    lucky = [of(560, 1), of(600, 3), of(560, 4), of(600, 6), of(600, 7), of(600, 9.6)]
    assert Goal().cheapest_as_accurate(lucky, RIVAL) == 4
    assert Goal().cheapest_as_accurate([of(600, 9.6), of(600, 9.7)], RIVAL) is None


@pytest.mark.parametrize(("images", "is_taken"), [(1000, False), (10_000, True)])
def test_few_images_cannot_show_that_a_point_is_as_accurate(images: int, is_taken: bool) -> None:
    """One in ten answers differs, half of them to the better: the error is 1 point on 1,000 images, 0.3 on 10,000."""
    rival = np.arange(images) % 20 < 10
    points = 3 * [Outcomes(rival ^ (np.arange(images) % 20 < 1) ^ (np.arange(images) % 20 > 18), np.full(images, 5.0))]
    found = Goal().cheapest_as_accurate(points, Outcomes(rival, np.full(images, 10.0)))
    assert (found is not None) is is_taken


def test_a_difference_by_hand() -> None:
    # 1, 0, 0, -1: mean 0, deviation sqrt(2/3), error half of it.
    ours, theirs = np.array([1, 1, 0, 0], bool), np.array([0, 1, 0, 1], bool)
    assert paired_difference(ours, theirs) == pytest.approx((0.0, np.sqrt(2 / 3) / 2))


def test_images_of_one_group_count_as_one() -> None:
    # 1, 1, 0, 0 in two groups: sums of 1 and -1 around the mean, so sqrt(2 * 2) over four images; singly sqrt(1/3) / 2.
    values = np.array([1.0, 1.0, 0.0, 0.0])
    assert standard_error(values, np.array([7, 7, 9, 9])) == pytest.approx(0.5)
    assert standard_error(values, None) == pytest.approx(np.sqrt(1 / 3) / 2)


@pytest.mark.parametrize("sizes", [None, np.repeat([0, 2], 2000)])
def test_accuracy_is_kept_among_small_and_large_images_and_not_in_the_mean_of_both(sizes: np.ndarray | None) -> None:
    rival = Outcomes(np.tile([True, False], 2000), np.full(4000, 10.0), None, None, sizes)
    correct = rival.correct.copy()
    correct[1:400:20], correct[2000:2400:20] = True, False  # 20 more small images are right, and 20 fewer large ones
    point = Outcomes(correct, np.full(4000, 5.0), None, None, sizes)
    assert Goal().cheapest_as_accurate(3 * [point], rival) == (None if sizes is not None else 0)
    is_better, said = Goal().compare(point, rival)
    assert is_better is (sizes is None)
    assert ("the 50 % of the images that are of one size" in said) is (sizes is not None)


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
    assert goal.choose_point(points, RIVAL_METERED) == place


@pytest.mark.parametrize(
    ("goal", "candidate", "is_better", "reason"),
    [
        (Goal("energy"), of(600, 90, energy_mj=25), True, "takes 50 % less energy"),
        (Goal("energy"), of(600, 5, energy_mj=60), False, "takes 20 % more energy.* which may be chance"),
        (Goal(max_time_ms=5, max_energy_mj=20), of(620, 6, energy_mj=1), False, "exceeds your limit of 5 ms and 20 mJ"),
        (Goal(max_energy_mj=60), of(620, 90, energy_mj=55), True, "takes 800 % more time"),
        (Goal("energy", min_accuracy=0.5), of(560, 90, energy_mj=25), True, "4.00 points less accurate"),
    ],
)
def test_better_by_energy(goal: Goal, candidate: Outcomes, is_better: bool, reason: str) -> None:
    found, said = goal.compare(candidate, RIVAL_METERED)
    assert found is is_better
    assert re.search(reason, said), said
