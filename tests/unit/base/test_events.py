"""Every line that jetsel logs names its event, and docs/monitoring.md lists each."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import jetsel
from jetsel.base.events import requests, run_about

PACKAGE = Path(jetsel.__file__).parent
DOCUMENT = PACKAGE.parent / "docs" / "monitoring.md"
LEVELS = {"debug", "info", "warning", "error", "critical", "exception"}
OF_OTHERS = "library"  # lines that libraries log


def calls() -> list[tuple[str, ast.Call]]:
    """Every call in the package, and where it stands."""
    return [
        (f"{path.relative_to(PACKAGE)}:{node.lineno}", node)
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    ]


def test_every_line_that_is_logged_names_its_event() -> None:
    without = [
        place
        for place, call in calls()
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)
        if call.func.value.id == "log" and call.func.attr in LEVELS
        if not any(keyword.arg == "extra" for keyword in call.keywords)
    ]
    assert without == []


def test_the_document_lists_every_event_and_no_other() -> None:
    named = {
        str(part.value)
        for _, call in calls()
        if isinstance(call.func, ast.Name) and call.func.id == "event"
        for part in ast.walk(call.args[0])
        if isinstance(part, ast.Constant)
    }
    rows = re.findall(r"^\| (`[^|]+) \|", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`([a-z-]+)`", row)]
    assert sorted(listed) == sorted({*named, OF_OTHERS})


def test_requests_are_those_of_the_innermost_work_and_of_this_thread() -> None:
    def fail() -> None:
        assert requests() == ("b",)
        raise ValueError("out")

    def work() -> tuple[str, ...]:
        with pytest.raises(ValueError, match="out"):
            run_about(lambda: ("b",), fail)
        return requests()

    assert run_about(("a", "c"), work) == ("a", "c")
    assert requests() == ()
