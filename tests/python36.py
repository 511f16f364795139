"""What keeps a file from running under Python 3.6, found without one: newer syntax, library calls, and imports.

`vermin` knows the language and the library call by call, `ruff` the syntax that the running Python cannot even parse or
that vermin has no rule for. Methods of variables are found where the tests of tests/host run under a real 3.6.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

LIBRARY = frozenset(
    {
        "argparse",
        "collections",
        "contextlib",
        "ctypes",
        "errno",
        "functools",
        "gc",
        "glob",
        "hashlib",
        "importlib",
        "io",
        "itertools",
        "json",
        "math",
        "mmap",
        "os",
        "pathlib",
        "platform",
        "re",
        "resource",
        "select",
        "signal",
        "socket",
        "struct",
        "sys",
        "tempfile",
        "threading",
        "time",
        "traceback",
        "typing",
        "warnings",
    }
)
"""Of the standard library: what 3.6 and all after it have. The real interpreters import each of them, in tests/host."""

ON_DEMAND = frozenset({"numpy", "onnxruntime", "pycuda", "tensorrt"})
"""What stands on a board and not everywhere: imported inside a function, so that a probe can say what is missing."""


def findings(path: Path) -> list[str]:
    """One line for each thing in the file that Python 3.6 lacks, and each import that is not on the lists."""
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
    for name, line, in_function in _imported(tree):
        root = name.partition(".")[0]
        if root in ON_DEMAND and not in_function:
            yield f"line {line}: {name} is imported outside of a function"
        elif name not in (".", "host.serving") and root not in LIBRARY | ON_DEMAND:
            yield f"line {line}: {name or 'a relative import'} is on no list of imports in tests/python36.py"


def _imported(tree: ast.Module) -> list[tuple[str, int, bool]]:
    """Every module that the file imports: its name, "." of one beside it, "" of one above, the line, whether inside."""
    found: list[tuple[str, int, bool]] = []

    def visit(node: ast.AST, in_function: bool) -> None:
        if isinstance(node, ast.Import):
            found.extend((alias.name, node.lineno, in_function) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.append(("" if node.level > 1 else "." if node.level else str(node.module), node.lineno, in_function))
        elif isinstance(node, ast.Call) and _called(node.func) in {"import_module", "__import__"}:
            names = [name.value for name in node.args[:1] if isinstance(name, ast.Constant)]
            found.extend((str(name), node.lineno, in_function) for name in names)
        inside = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            visit(child, inside)

    visit(tree, False)
    return found


def _called(function: ast.expr) -> str | None:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else None
