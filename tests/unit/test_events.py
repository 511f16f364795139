"""Every line that jetsel logs names its event, and docs/logs.md lists each: its level, its fields, what to do."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import jetsel
from jetsel.events import about, event, requests

PACKAGE = Path(jetsel.__file__).parent
DOCUMENT = PACKAGE.parent / "docs" / "logs.md"
LEVELS = {"debug", "info", "warning", "error", "critical"}
ALWAYS = {"request_id", "left_out"}  # any line may have them: docs/logs.md says so once

Found = dict[str, tuple[set[str], set[str]]]  # levels and fields, by event


def in_code(sources: Iterable[tuple[str, str]]) -> tuple[Found, list[str]]:
    """The events of these files (name, text), and the calls that log without one."""
    found: Found = {}
    without = []
    for name, text in sources:
        tree = ast.parse(text)
        functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        for function in functions.values():
            for call, levels in logging_calls(function):
                extra = next((keyword.value for keyword in call.keywords if keyword.arg == "extra"), None)
                events = [] if extra is None else list(events_of(extra, function, functions))
                if not events:
                    without.append(f"{name}:{call.lineno}")
                for made in events:
                    event_levels, fields = found.setdefault(str(ast.literal_eval(made.args[0])), (set(), set()))
                    event_levels |= levels
                    fields |= {keyword.arg for keyword in made.keywords if keyword.arg} - ALWAYS
    return found, sorted(set(without))


def logging_calls(function: ast.FunctionDef) -> Iterator[tuple[ast.Call, set[str]]]:
    """The calls in a function that log, each with the levels that it may log at."""
    for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
        target = call.func
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "log":
            if target.attr == "exception":
                yield call, {"error"}
            elif target.attr in LEVELS:
                yield call, {target.attr}
            elif target.attr == "makeRecord":
                yield call, {found.lower() for found in attributes(call.args) if found.lower() in LEVELS}
        elif isinstance(target, ast.Name) and any(keyword.arg == "extra" for keyword in call.keywords):
            yield call, {found for value in assigned(target.id, function) for found in attributes([value])} & LEVELS


def events_of(node: ast.expr, function: ast.FunctionDef, functions: dict[str, ast.FunctionDef]) -> Iterator[ast.Call]:
    """The calls of event(...) that an `extra` comes from: written there, assigned before, or by a function beside."""
    if isinstance(node, ast.Name):
        for value in assigned(node.id, function, node):
            yield from events_of(value, function, functions)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id == "event":
            yield node
        elif node.func.id in functions:
            for part in ast.walk(functions[node.func.id]):
                if isinstance(part, ast.Return) and part.value is not None:
                    yield from events_of(part.value, functions[node.func.id], functions)


def assigned(name: str, function: ast.FunctionDef, used: ast.expr | None = None) -> Iterator[ast.expr]:
    """What a name is set to in a function, in tuples too; where it is used at a place, since the use before."""
    names = [part for part in ast.walk(function) if isinstance(part, ast.Name) and part.id == name]
    until = used.lineno if used is not None else function.end_lineno or 0
    reads = [part.lineno for part in names if isinstance(part.ctx, ast.Load) and part.lineno < until]
    since = max(reads, default=0) if used is not None else 0
    for part in ast.walk(function):
        if isinstance(part, ast.Assign) and since <= part.lineno <= until:
            for target in part.targets:
                pairs = [(target, part.value)]
                if isinstance(target, ast.Tuple) and isinstance(part.value, ast.Tuple):
                    pairs = list(zip(target.elts, part.value.elts, strict=True))
                yield from (value for at, value in pairs if isinstance(at, ast.Name) and at.id == name)


def attributes(nodes: Iterable[ast.expr]) -> set[str]:
    return {part.attr for node in nodes for part in ast.walk(node) if isinstance(part, ast.Attribute)}


def package() -> list[tuple[str, str]]:
    return [(str(path.relative_to(PACKAGE)), path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")]


def documented() -> Found:
    """The rows of the tables: event, level, when, fields, what to do."""
    row = re.compile(r"^\| `([a-z-]+)` \| ([a-z, ]+) \|[^|]+\|([^|]*)\|[^|]*\|$", re.MULTILINE)
    rows = row.findall(DOCUMENT.read_text(encoding="utf-8"))
    names = [name for name, _, _ in rows]
    assert len(names) == len(set(names)), "an event stands there twice"
    return {name: (set(levels.split(", ")), set(re.findall(r"`(\w+)`", fields))) for name, levels, fields in rows}


def test_every_line_that_is_logged_names_its_event() -> None:
    _, without = in_code(package())
    assert without == []


def test_the_document_lists_every_event_with_its_level_and_fields_and_no_other() -> None:
    found, _ = in_code(package())
    known = documented()
    known.pop("library")  # lines of other people's code
    assert sorted(known) == sorted(found)
    assert known == found


@pytest.mark.parametrize(
    ("text", "events", "without"),
    [
        ('def f():\n    log.error("x", extra=event("a", pid=1))', {"a": ({"error"}, {"pid"})}, []),
        ('def f():\n    log.info("x")', {}, ["f.py:2"]),
        ('def f():\n    log.info("x", extra={"event": "a"})', {}, ["f.py:2"]),
        (
            'def f():\n    x, told = 1, event("a")\n    log.exception("x", extra=told)',
            {"a": ({"error"}, set())},
            [],
        ),
        (
            'def g():\n    return event("a", left_out=1)\ndef f():\n    tell = log.info if x else log.warning\n'
            '    tell("x", extra=g())',
            {"a": ({"info", "warning"}, set())},
            [],
        ),
    ],
)
def test_the_reader_of_the_code_finds_events_and_calls_without(text: str, events: Found, without: list[str]) -> None:
    assert in_code([("f.py", text)]) == (events, without)


def test_requests_are_those_of_the_innermost_block_and_of_this_thread() -> None:
    assert requests() == ()
    with about(("a", "b")):
        with about(("b",)):
            assert requests() == ("b",)
        assert requests() == ("a", "b")
        with pytest.raises(ValueError, match="out"), about(("c",)):
            raise ValueError("out")
        assert requests() == ("a", "b")
    assert requests() == ()


def test_an_event_is_what_a_log_record_may_carry() -> None:
    assert event("ready", name="x", pid=7) == {"event": "ready", "fields": {"name": "x", "pid": 7}}
