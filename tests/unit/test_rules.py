"""The rules of tests are held to, and each finds what it is for."""

from pathlib import Path

from tests.rules import findings

TESTS = Path(__file__).parents[1]


def test_every_test_holds_to_the_rules() -> None:
    assert findings(TESTS) == []
