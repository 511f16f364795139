"""What is logged of rails that come and go."""

import pytest

from jetsel.power.sampling.changes import Changes
from jetsel.power.sampling.messages import Word

GONE = Word(["VDD_IN"], "VDD_IN: input/output error", [], None)
BACK = Word(["VDD_IN"], None, [], None)


def test_a_rail_that_flaps_is_told_of_by_a_pair_of_lines_and_a_count(caplog: pytest.LogCaptureFixture):
    changes = Changes()
    for number in range(80):  # four times a second for ten seconds, gone and back
        changes.add(GONE if number % 2 == 0 else BACK, 100 + number / 8)
    changes.look(109.95)
    assert caplog.messages == [
        "power is not measured: VDD_IN: input/output error",
        "power is measured again: VDD_IN",
    ]
    changes.look(112.0)
    assert caplog.messages[2:] == ["power is measured again: VDD_IN; it changed 78 times more in 12 s"]
    changes.look(130.0)
    assert len(caplog.messages) == 3


def test_the_last_state_is_told_in_the_end(caplog: pytest.LogCaptureFixture):
    changes = Changes()
    for number, word in enumerate((GONE, BACK, GONE)):
        changes.add(word, 100.0 + number)
    changes.look(111.0)
    assert caplog.messages[-1] == "power is not measured: VDD_IN: input/output error; it changed 1 times more in 11 s"


def test_changes_that_are_far_apart_are_each_told(caplog: pytest.LogCaptureFixture):
    changes = Changes()
    for number in range(6):
        changes.add(GONE if number % 2 == 0 else BACK, 100 + 6.0 * number)
    assert len(caplog.messages) == 6
