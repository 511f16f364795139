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
MOST_FIELDS = 15
OF_ANY_LENGTH = ("wire/", "base/config.py", "addons/cameras/config.py", "addons/fleet/config.py")
"""What may have more fields: messages of the wire, and settings."""


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


def long_classes() -> dict[str, int]:
    """Return how many fields each public class has that has more than MOST_FIELDS, by its file and name.

    Fields are annotated in the class itself: those of dataclasses, NamedTuples and Structs.
    """
    fields = {
        f"{path.relative_to(PACKAGE)}: {node.name}": sum(isinstance(part, ast.AnnAssign) for part in node.body)
        for path, tree in _trees()
        if not str(path.relative_to(PACKAGE)).startswith(OF_ANY_LENGTH)
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    }
    return {place: count for place, count in fields.items() if count > MOST_FIELDS}


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
    places, shared, long = participles(), shared_classes(), long_classes()
    for line in [*places, *(f"{name} names several classes: {', '.join(files)}" for name, files in shared.items())]:
        print(line)
    for place, count in long.items():
        print(f"{place} has {count} fields, and at most {MOST_FIELDS} are read at once")
    print(
        f"{len(places)} participles, at most {MOST}; {len(shared)} names of several classes; {len(long)} long classes"
    )
    return int(len(places) > MOST or bool(shared) or bool(long))


if __name__ == "__main__":
    sys.exit(main())
