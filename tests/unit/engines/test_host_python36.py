"""The engine host is written for Python 3.6, wherever the tests run."""

from __future__ import annotations

from pathlib import Path

import jetsel
from tests import python36

HOST = Path(jetsel.__file__).parent / "engines" / "host"


def test_the_host_uses_only_what_python_36_has() -> None:
    assert {path.name: found for path in HOST.glob("*.py") if (found := python36.findings(path))} == {}
