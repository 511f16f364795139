"""Promises on other images: what is answered, what of it is wrong, and whether that breaks the promise."""

from __future__ import annotations

import numpy as np
import pytest

from jetsel.artefact.promise import Promise, Promises
from jetsel.calibrate.judge.evaluating import check_promises
from jetsel.calibrate.record.replay import replay_all
from jetsel.policies.single import Single
from tests.unit.calibrate.recorded import of_two_classes

MARGINS = [4.0] * 20 + [1.0] * 20  # the log-odds of class 0


def promise(level: float, threshold: float) -> Promise:
    return Promise(level, threshold, (), answered=0.5, wrong=0.0)


def test_a_promise_is_broken_if_the_whole_interval_is_above_its_level() -> None:
    recording = of_two_classes(MARGINS, classes=[1, *[0] * 19, *[1] * 20])  # 1 of the sure ones is wrong, and the rest
    run = replay_all(Single("s"), recording, range(40), "top1", {"s": 1.0}, "s")
    kept = (promise(0.01, 9.0), promise(0.02, 3.0), promise(0.2, 0.5))
    found = check_promises("single:s", Promises(kept, (), 40), run, recording.classes == 1, None)
    assert [(one.policy, one.wrong_at_most, one.is_kept) for one in found] == [
        ("single:s", 0.01, True),
        ("single:s", 0.02, None),
        ("single:s", 0.2, False),
    ]
    nothing, half, all_of = found
    assert (nothing.answered, nothing.wrong, nothing.wrong_interval) == (0.0, None, None)
    assert (half.answered, half.wrong) == (0.5, pytest.approx(1 / 20))
    assert half.wrong_interval is not None
    # Wilson: (1/20 + z z/40 -+ z sqrt(0.05 0.95/20 + z z/1600)) / (1 + z z/20)
    assert half.wrong_interval.low == pytest.approx(0.00888, abs=1e-5)
    assert (all_of.answered, all_of.wrong) == (1.0, pytest.approx(21 / 40))
    groups = np.array([0] * 20 + [1] * 20)  # two images, each twenty times: they prove little
    (grouped,) = check_promises("s", Promises(kept[2:], (), 40), run, recording.classes == 1, groups)
    assert grouped.is_kept is None, "two images tell little"
