"""The doubles of TensorRT offer only names that the real bindings of their version have (tests/doubles/symbols)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

DOUBLES = Path(__file__).parents[1] / "doubles"


@pytest.mark.parametrize("table", sorted((DOUBLES / "tables").glob("*.json")), ids=lambda path: path.stem)
def test_a_double_offers_what_the_real_bindings_have_and_no_more(table: Path) -> None:
    offered = json.loads(table.read_text())
    real = json.loads((DOUBLES / offered["made_of"]).read_text())
    assert set(offered["module"]) <= set(real["module"])
    for name, attributes in offered["classes"].items():
        assert set(attributes) <= set(real["classes"][name]), name
