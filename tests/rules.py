"""What every test must hold to, read from its source: waiting, time, ports, parameters and wording."""

import ast
from collections.abc import Iterator
from pathlib import Path

MOST_CASES = 8
"""Each case of a parametrised test is of a class of inputs of its own; more are a corpus, or say a thing twice."""

MOST_WORDS = 9
"""A message is recognised by its key words; a whole sentence ties a test to its wording."""

CLOCKS = frozenset({"monotonic", "perf_counter", "time", "monotonic_ns", "perf_counter_ns"})


def findings(folder: Path) -> list[str]:
    """One line for each place in the files test_*.py under `folder` that breaks a rule."""
    found = []
    for path in sorted(folder.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found += [f"{path.relative_to(folder)}:{line}: {why}" for line, why in _broken(tree)]
    return found


def _broken(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from _call(node)
        elif isinstance(node, ast.Assert):
            yield from _assertion(node)
        elif isinstance(node, ast.FunctionDef):
            parametrised = [mark for mark in node.decorator_list if _name(mark) == "parametrize"]
            if len(parametrised) > 1:
                yield node.lineno, "a cross product of parameters: list the cases that differ"


def _call(node: ast.Call) -> Iterator[tuple[int, str]]:
    name = _name(node)
    if name == "sleep":
        yield node.lineno, "it sleeps: wait for a condition (tests.waiting.until), or inject a clock"
    elif name == "free_port":
        yield node.lineno, "a free port may be taken meanwhile: bind port 0 and read what it became"
    elif name == "parametrize" and len(node.args) > 1 and isinstance(node.args[1], ast.List | ast.Tuple):
        cases = len(node.args[1].elts)
        if cases > MOST_CASES:
            yield node.lineno, f"{cases} cases where {MOST_CASES} are the most: keep one of each class of inputs"


def _assertion(node: ast.Assert) -> Iterator[tuple[int, str]]:
    compared = node.test
    if not isinstance(compared, ast.Compare):
        return
    if isinstance(compared.ops[0], ast.Lt | ast.LtE) and any(
        isinstance(part, ast.Call) and _name(part) in CLOCKS for part in ast.walk(compared.left)
    ):
        yield node.lineno, "an upper bound on time: how fast something is belongs to the benchmarks"
    for part in (compared.left, *compared.comparators):
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and len(part.value.split()) > MOST_WORDS:
            yield node.lineno, f"a whole sentence of {len(part.value.split())} words: assert its key words"


def _name(node: ast.AST) -> str | None:
    """The last part of what is called: `sleep` of `time.sleep(1)`."""
    called = node.func if isinstance(node, ast.Call) else node
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else None


if __name__ == "__main__":
    print("\n".join(findings(Path(__file__).parent)))
