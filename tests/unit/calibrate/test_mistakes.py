"""Where a policy goes wrong, on four photographs that can be counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from jetsel.calibrate.judge.findings import ClassFinding
from jetsel.calibrate.judge.results import differing, mistakes
from jetsel.calibrate.record.recording import Recording
from jetsel.calibrate.record.replay import Run

NAMES = ("cat", "dog", "fox")


def run(*answered: int) -> Run:
    none = np.zeros(4)
    return Run(np.array(answered), none > 0, none, np.ones((4, 1), bool), none > 0, 0.0, ())


def recording(due: list[int], paths: tuple[str, ...]) -> Recording:
    """Of one model, which always says fox, and is the surer the later the image."""
    n = len(due)
    logits = np.zeros((1, n, 3), np.float32)
    logits[0, :, 2] = np.arange(1, n + 1)
    return Recording(("m",), logits, np.array(due), np.zeros((n, 1), np.float32), {"m": 1.0}, paths=paths)


def test_classes_stand_with_the_worst_first_and_hopeless_images_are_described() -> None:
    runs = {"single:m": run(0, 2, 1, 0), "cascade": run(0, 2, -1, 2)}
    made = recording([0, 0, 1, 1], ("a.jpg", "b.jpg", "c.jpg", "d.jpg"))
    found = mistakes(made, runs, "cascade", NAMES, {"m": 2.0})
    assert found.classes == [
        ClassFinding("dog", 2, 0.0, {"refused": 1, "fox": 1}),
        ClassFinding("cat", 2, 0.5, {"fox": 1}),
    ]
    assert (found.policy, found.hopeless.total) == ("cascade", 2)
    assert [(one.path, one.label) for one in found.hopeless.images] == [("b.jpg", "cat"), ("d.jpg", "dog")]
    guess = found.hopeless.images[0].guesses["m"]
    assert (guess.label, guess.probability) == ("fox", pytest.approx(np.e / (np.e + 2)))  # logit 2, temperature 2


def test_images_on_which_policies_differ_carry_the_answer_of_each_that_chooses() -> None:
    runs = {"single:m": run(0, 0, 0, 0), "cascade": run(0, 2, -1, 2), "chain": run(0, 1, 1, 2)}
    found = differing(recording([0, 0, 1, 1], ("a.jpg", "b.jpg", "c.jpg", "d.jpg")), runs, NAMES, {"m": 1.0})
    answers = [(one.path, one.answers) for one in found.images]
    assert answers == [
        ("b.jpg", {"cascade": "fox", "chain": "dog"}),
        ("c.jpg", {"cascade": "refused", "chain": "dog"}),
    ]
