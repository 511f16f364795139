"""One draw of `calibration.promises`, on the answers that ship with ImageNet's family."""

from __future__ import annotations

from calibration.imagenet.promises import KIND, shipped
from calibration.promises import BEST, DEFAULT, judged
from jetsel.calibrate.judge.learn_then_test import LEVELS


def test_a_draw_judges_the_default_a_cascade_and_the_best_model_at_every_level() -> None:
    recording, identity = shipped()
    found = judged(recording, KIND, identity, images=400, seed=0)
    assert list(found) == [DEFAULT, KIND, BEST]
    for levels in found.values():
        assert [one.level for one in levels] == list(LEVELS)
        for one in levels:
            assert 0 <= one.naive_answered <= 1
            assert one.hindsight <= one.oracle, "nothing answers more than what knows all errors"
            if one.answered is not None and one.wrong is not None:
                assert one.answered * (1 - one.wrong) <= one.oracle * (1 - one.level) + 1e-9
        assert any(one.answered for one in levels), "10 % can be promised"
