"""The engine host is written for Python 3.6, wherever the tests run; the check that says so can fail."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import jetsel
from tests import python36

HOST = Path(jetsel.__file__).parent / "engines" / "host.py"


def changed(folder: Path, addition: str) -> Path:
    """A copy of the host with lines added at its end."""
    path = folder / "host.py"
    path.write_text(f"{HOST.read_text(encoding='utf-8')}\n\n{addition}\n", encoding="utf-8")
    return path


def test_the_host_uses_only_what_python_36_has() -> None:
    assert python36.findings(HOST) == []


@pytest.mark.parametrize(
    ("addition", "expected"),
    [
        pytest.param("if (count := 3): pass", "named expressions", id="walrus"),
        pytest.param("def f(a, /): pass", "positional-only", id="positional only"),
        pytest.param("x = 1\nprint(f'{x=}')", "self-documenting", id="f-string that names its value"),
        pytest.param("x = {}\nprint(f'{x['a']}')", "f-string", id="f-string with its own quotes inside"),
        pytest.param("def f(a):\n    return *a, 1", "unpacking in return", id="unpacking in return"),
        pytest.param("match 3:\n    case 3: pass", "pattern matching", id="match"),
        pytest.param("def f(a: list[int]): pass", "builtin generic", id="generic built-in as an annotation"),
        pytest.param("def f(a: int | None): pass", "union types", id="union as an annotation"),
        pytest.param("breakpoint()", "'breakpoint'", id="built-in function"),
        pytest.param("zip((), (), strict=True)", "zip(strict)", id="argument of a built-in function"),
        pytest.param("import math\nmath.prod((2, 3))", "'math.prod'", id="function of a module"),
        pytest.param("import os\nos.memfd_create('x')", "'os.memfd_create'", id="function of an old module"),
        pytest.param("import contextlib\ncontextlib.nullcontext()", "nullcontext", id="class of an old module"),
        pytest.param("import threading\nthreading.Thread(context=None)", "Thread(context)", id="argument of a class"),
        pytest.param("def f(text):\n    return text.removeprefix('x')", ".removeprefix", id="method of a variable"),
        pytest.param("def f(data):\n    return data.hex(sep=' ')", ".hex(sep=)", id="argument of a variable's method"),
        pytest.param("def f(area):\n    area.madvise(1)", ".madvise", id="method of a type of an imported module"),
        pytest.param("import time\ntime.time_ns()  # novm", "time_ns", id="hidden from vermin"),
        pytest.param("import dataclasses", "'dataclasses' module", id="module"),
        pytest.param("import subprocess\nsubprocess.run((), capture_output=True)", "capture_output", id="keyword"),
        pytest.param("import subprocess", "subprocess is on no list", id="module that the host does without"),
        pytest.param("import distutils", "distutils is on no list", id="module that later versions lack"),
        pytest.param("import jetsel", "jetsel is on no list", id="ours"),
        pytest.param("def f():\n    from jetsel.wire import Classify", "jetsel.wire is on no list", id="ours, inside"),
        pytest.param("def f():\n    from . import base", "a relative import is on no list", id="ours, relative"),
        pytest.param("import numpy", "numpy is imported outside", id="numpy outside of a function"),
        pytest.param("class A:\n    import tensorrt", "tensorrt is imported outside", id="tensorrt in a class"),
        pytest.param("from pycuda import driver", "pycuda is imported outside", id="pycuda outside of a function"),
        pytest.param("import importlib\nimportlib.import_module('onnxruntime')", "onnxruntime is", id="by its name"),
        pytest.param("def f():\n    __import__('cv2')", "cv2 is on no list", id="by its name, inside"),
        pytest.param("def f(:", "line", id="no Python at all"),
    ],
)
def test_what_python_36_lacks_is_found(tmp_path: Path, addition: str, expected: str) -> None:
    assert expected in "\n".join(python36.findings(changed(tmp_path, addition)))


@pytest.mark.parametrize(
    "addition",
    [
        pytest.param("x = 1  # type: int\ny: int = 2\nprint(f'{x!r:>5}', 1_000)", id="what 3.6 brought"),
        pytest.param("def f():\n    import numpy\n    return numpy.prod((2, 3))", id="numpy inside, and its own names"),
        pytest.param("def f():\n    from pycuda import driver\n    return driver", id="pycuda inside"),
        pytest.param("import json\njson.loads(b'1')", id="what 3.6 brought to a call"),
    ],
)
def test_what_python_36_has_is_left_alone(tmp_path: Path, addition: str) -> None:
    assert python36.findings(changed(tmp_path, addition)) == []


def test_what_the_host_imports_by_the_name_in_a_table_is_on_the_list() -> None:
    (needed,) = (
        ast.literal_eval(node.value)
        for node in ast.parse(HOST.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "NEEDED"
    )
    assert {name for names in needed.values() for name in names} == python36.ON_DEMAND
