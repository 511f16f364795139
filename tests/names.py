"""Names in jetsel/ that a newcomer cannot read: `python -m tests.names` lists them, and fails over the limit."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "jetsel"
PARTICIPLES = frozenset(("asked", "found", "judged", "known", "named", "said", "seen", "told"))
"""Alone they name neither a value nor an action."""
MOST = 60


def participles() -> list[str]:
    """Return the file and line of each identifier that is exactly one of PARTICIPLES."""
    return [
        f"{path.relative_to(PACKAGE.parent)}:{line}: {name}"
        for path, tree in _trees()
        for line, name in sorted({(node.lineno, name) for node, name in _identifiers(tree) if name in PARTICIPLES})
    ]


def shared_classes() -> dict[str, list[str]]:
    """Return the files of each name that several public classes have."""
    files: dict[str, list[str]] = defaultdict(list)
    for path, tree in _trees():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files[node.name].append(str(path.relative_to(PACKAGE)))
    return {name: places for name, places in files.items() if len(places) > 1}


def _trees() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def _identifiers(tree: ast.Module) -> Iterator[tuple[ast.Name | ast.arg | ast.stmt | ast.Attribute, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node, node.id
        elif isinstance(node, ast.arg):
            yield node, node.arg
        elif isinstance(node, ast.Attribute):
            yield node, node.attr
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node, node.name


def main() -> int:
    """List what stands against the rules; return 1 if it is too much."""
    places, shared = participles(), shared_classes()
    for line in [*places, *(f"{name} names several classes: {', '.join(files)}" for name, files in shared.items())]:
        print(line)
    print(f"{len(places)} participles, at most {MOST}; {len(shared)} names of several classes")
    return int(len(places) > MOST or bool(shared))


if __name__ == "__main__":
    sys.exit(main())
