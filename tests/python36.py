"""What keeps a file from running under Python 3.6, found without one: newer syntax, library calls, and imports.

`vermin` knows the language and the library call by call, `ruff` the syntax that the running Python cannot even parse or
that vermin has no rule for. Methods of variables are found where the tests of tests/host run under a real 3.6.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path


def findings(path: Path) -> list[str]:
    """One line for each thing in the file that Python 3.6 lacks, and each library that a board may lack."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except SyntaxError as error:
        return [f"line {error.lineno}: {error.msg}"]
    return [*_vermin(path), *_ruff(path), *_unions(tree), *_imports(tree)]


def _vermin(path: Path) -> list[str]:
    """What vermin reports. Its exit status is 0 where it cannot read the file, so any line counts."""
    options = ["--target=3.6-", "--violations", "--quiet", "--no-tips", "--no-config-file", "-vvv", "--processes=1"]
    # Annotations are evaluated where they stand; comments that hide a line from vermin are not obeyed.
    options += ["--eval-annotations", "--no-parse-comments"]
    return _lines([sys.executable, "-c", "import vermin; vermin.main()", *options, str(path)])


def _ruff(path: Path) -> list[str]:
    """The syntax that came after 3.7, the oldest that ruff knows."""
    options = ["--isolated", "--no-cache", "--quiet", "--target-version=py37", "--select=E9", "--output-format=concise"]
    return _lines([sys.executable, "-m", "ruff", "check", *options, str(path)])


def _lines(command: list[str]) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]


def _unions(tree: ast.Module) -> Iterator[str]:
    """Annotations such as `int | None`, of which vermin misses some."""
    for node in ast.walk(tree):
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            for part in ast.walk(annotation) if isinstance(annotation, ast.AST) else ():
                if isinstance(part, ast.BinOp) and isinstance(part.op, ast.BitOr):
                    yield f"line {part.lineno}: union types require 3.10"


def _imports(tree: ast.Module) -> Iterator[str]:
    """What is no standard library is imported inside a function, so that a probe can say what is missing."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [str(node.module)]
        for name in names:
            if name.partition(".")[0] not in sys.stdlib_module_names:
                yield f"line {node.lineno}: {name} is imported outside of a function"
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))
