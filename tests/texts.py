"""Every sentence in jetsel/ with file and line: `python -m tests.texts` for users' strings, `--code` for docstrings."""

from __future__ import annotations

import ast
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PUZZLING = re.compile(
    r"\b(whoever|so many(th)?|what is no|is told|hung up on|without a word|such a one|likewise"
    r"|(None|null|empty|Error) where)\b",
    re.IGNORECASE,
)
"""Phrases that puzzle readers."""
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each string of several words that is no docstring, names in it as {}."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    passed_over = {id(node) for node in _docstrings(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            passed_over.update(map(id, node.values))
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in passed_over:
            text = node.value
        else:
            continue
        if re.search(r"\w \w", text):
            yield node.lineno, text


def comments(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each docstring and comment."""
    for node in _docstrings(ast.parse(path.read_text(encoding="utf-8"))):
        yield node.lineno, str(node.value)
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string


def _docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the docstrings of functions and classes, and the strings that document a module's values."""
    for owner in ast.walk(tree):
        if isinstance(owner, _DOCUMENTED):
            for node in owner.body:
                if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                    yield node.value


if __name__ == "__main__":
    for path in sorted((ROOT / "jetsel").rglob("*.py")):
        for line, text in sorted((comments if "--code" in sys.argv[1:] else strings)(path)):
            print(f"{path.relative_to(ROOT)}:{line}: {' '.join(text.split())}")
