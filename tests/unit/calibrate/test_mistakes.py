"""Where a policy goes wrong, on four photographs that can be counted by hand."""

from __future__ import annotations

import numpy as np

from jetsel.calibrate.findings import ClassFinding
from jetsel.calibrate.mistakes import mistakes
from jetsel.calibrate.recording import Recording
from jetsel.calibrate.replay import Run

NAMES = ("cat", "dog", "fox")


def run(*answered: int) -> Run:
    none = np.zeros(4)
    return Run(np.array(answered), none > 0, none, np.ones((4, 1), bool), none > 0, 0.0, ())


def test_classes_stand_with_the_worst_first_and_hopeless_photographs_are_named() -> None:
    due, paths = np.array([0, 0, 1, 1]), ("a.jpg", "b.jpg", "c.jpg", "d.jpg")
    recording = Recording(
        ("m",), np.zeros((1, 4, 3), np.float32), due, np.zeros((4, 1), np.float32), {"m": 1.0}, paths=paths
    )
    found = mistakes(recording, {"single:m": run(0, 2, 1, 0), "cascade": run(0, 2, -1, 2)}, "cascade", NAMES)
    assert found.classes == [
        ClassFinding("dog", 2, 0.0, {"refused": 1, "fox": 1}),
        ClassFinding("cat", 2, 0.5, {"fox": 1}),
    ]
    assert (found.policy, found.hopeless, found.paths) == ("cascade", 2, [("b.jpg", "cat"), ("d.jpg", "dog")])
