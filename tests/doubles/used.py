"""What a source file uses of TensorRT and of pycuda, read from its syntax tree: names, and the guards around them."""

from __future__ import annotations

import ast
import builtins
import importlib
import types
from collections.abc import Iterator
from dataclasses import dataclass, field

TENSORRT = {"trt", "tensorrt"}  # the names that a module of TensorRT is bound to, alone or as an attribute
PYCUDA = {"cuda", "drv", "driver"}
# A top-level class or function that has one of these is about the GPU: only there are unknown attributes looked for.
ABOUT_THE_GPU = TENSORRT | PYCUDA | {"builder", "context", "engine", "gpu", "network"}


@dataclass
class Used:
    """The names that a file uses.

    module: of the module itself. members: (class, name) where the class is written out, as BuilderFlag.FP16 is.
    attributes: of all else; of_gpu: those of them in code about the GPU. cuda: of pycuda.driver. guards: asked for with
    hasattr, or getattr and a default. defined: by the file itself, so that its own are not taken for TensorRT's.
    """

    module: set[str] = field(default_factory=set)
    members: set[tuple[str, str]] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    of_gpu: set[str] = field(default_factory=set)
    cuda: set[str] = field(default_factory=set)
    guards: set[str] = field(default_factory=set)
    defined: set[str] = field(default_factory=set)
    imported: set[str] = field(default_factory=set)

    def strangers(self, known: set[str]) -> set[str]:
        """Return the attributes of code about the GPU that nobody has: neither `known`, nor the file's, nor Python's.

        A misspelt name of TensorRT is one of them.
        """
        return self.of_gpu - known - self.defined - _of_python(self.imported)


def read(source: str) -> Used:
    """Return what this file uses."""
    used, tree = Used(), ast.parse(source)
    for block in tree.body:
        if any(_called(node) in ABOUT_THE_GPU for node in ast.walk(block)):
            attributes = (node for node in ast.walk(block) if isinstance(node, ast.Attribute))
            used.of_gpu.update(node.attr for node in attributes if _called(node.value) != "pythonapi")  # C functions
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            _attribute(node, used)
        elif isinstance(node, ast.Call) and _called(node.func) == "namedtuple" and len(node.args) > 1:
            used.defined.update(str(ast.literal_eval(node.args[1])).split())
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            is_guard = node.func.id == "hasattr" or (node.func.id == "getattr" and len(node.args) == 3)
            if is_guard and isinstance(node.args[1], ast.Constant):
                used.guards.add(node.args[1].value)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            used.defined.add(node.name)
        elif isinstance(node, ast.arg):
            used.defined.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            used.defined.add(node.id)
        elif isinstance(node, ast.Import):
            used.imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            used.imported.add(node.module)
    return used


def _attribute(node: ast.Attribute, used: Used) -> None:
    owner = node.value
    if node.attr.startswith("__"):
        return
    if _called(owner) in TENSORRT:
        used.module.add(node.attr)
    elif _called(owner) in PYCUDA:
        used.cuda.add(node.attr)
    elif isinstance(owner, ast.Attribute) and _called(owner.value) in TENSORRT:
        used.members.add((owner.attr, node.attr))
    elif isinstance(owner, ast.Name) and owner.id in ("self", "cls") and isinstance(node.ctx, ast.Store):
        used.defined.add(node.attr)
    else:
        used.attributes.add(node.attr)


def _called(node: ast.AST) -> str | None:
    """Return what a name, an argument or an attribute is called, without a leading underscore."""
    if isinstance(node, ast.Name):
        return node.id.lstrip("_")
    if isinstance(node, ast.arg):
        return node.arg.lstrip("_")
    return node.attr.lstrip("_") if isinstance(node, ast.Attribute) else None


def _of_python(modules: set[str]) -> set[str]:
    found: set[str] = set()
    for owner in _classes([builtins, types, *map(_module, modules)]):
        found.update(dir(owner))
    return found


def _module(name: str) -> types.ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:  # TensorRT and pycuda themselves
        return None


def _classes(modules: list[types.ModuleType | None]) -> Iterator[object]:
    for module in modules:
        yield module
        yield from (value for value in vars(module).values() if isinstance(value, type)) if module else ()
