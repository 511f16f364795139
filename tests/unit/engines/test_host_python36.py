"""The engine host is written for Python 3.6, wherever the tests run; the check that says so can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

import jetsel
from tests import python36

HOST = Path(jetsel.__file__).parent / "engines" / "host"


def test_the_host_uses_only_what_python_36_has() -> None:
    assert {path.name: found for path in HOST.glob("*.py") if (found := python36.findings(path))} == {}


@pytest.mark.parametrize(
    ("addition", "expected"),
    [
        pytest.param("if (count := 3): pass", "named expressions", id="syntax"),
        pytest.param("def f(a: int | None): pass", "union types", id="annotation"),
        pytest.param("import math\nmath.prod((2, 3))", "'math.prod'", id="function"),
        pytest.param("def f():\n    from jetsel.wire import Classify", "jetsel.wire is on no list", id="ours"),
        pytest.param("from .. import base", "a relative import is on no list", id="above the folder"),
        pytest.param("import numpy", "numpy is imported outside", id="numpy outside of a function"),
    ],
)
def test_what_python_36_lacks_is_found(tmp_path: Path, addition: str, expected: str) -> None:
    path = tmp_path / "serving.py"
    path.write_text(f"{(HOST / 'serving.py').read_text(encoding='utf-8')}\n\n{addition}\n", encoding="utf-8")
    assert expected in "\n".join(python36.findings(path))
