"""The rules of tests are held to, and each finds what it is for."""

from pathlib import Path

import pytest

from tests.rules import findings

TESTS = Path(__file__).parents[1]


def test_every_test_holds_to_the_rules() -> None:
    assert findings(TESTS) == []


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("time.sleep(1)", "sleeps"),
        ("port = free_port()", "port 0"),
        ("@pytest.mark.parametrize('x', [1, 2, 3, 4, 5, 6, 7, 8, 9])\ndef test(x): pass", "9 cases"),
        ("@parametrize('x', [1])\n@parametrize('y', [2])\ndef test(x, y): pass", "cross product"),
        ("assert time.monotonic() - began < 1", "upper bound"),
        ("assert said == 'one two three four five six seven eight nine ten'", "sentence of 10 words"),
    ],
)
def test_what_breaks_a_rule_is_found(tmp_path: Path, source: str, said: str) -> None:
    (tmp_path / "test_it.py").write_text(source)
    assert [said in line for line in findings(tmp_path)] == [True]
