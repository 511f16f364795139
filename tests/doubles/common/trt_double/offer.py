"""One version of TensorRT out of the doubles' classes: what its table does not list is taken away."""

import json
from pathlib import Path

from trt_double import builder, config, context, engine, network, values
from trt_double.board import RULES

TABLES = Path(__file__).resolve().parent.parent.parent / "tables"
OPERATORS = ("__getitem__", "__len__")  # that a version may lack
MODULES = (builder, config, context, engine, network, values)
ABBREVIATIONS = {"float32": "FLOAT", "float16": "HALF", "int8": "INT8", "int32": "INT32"}


def implemented():
    """Return {public name of the module: what it is}: classes, functions and data types, of all versions together."""
    names = {name: getattr(values.DataType, member) for name, member in ABBREVIATIONS.items()}
    names.update(values.ENUMERATIONS, init_libnvinfer_plugins=_no_plugins)
    for module in MODULES:
        for name, value in vars(module).items():
            is_ours = isinstance(value, type) and value.__module__ == module.__name__
            if is_ours and not name.startswith("_") and not issubclass(value, Exception) and name != "Enumeration":
                names.setdefault(name, value)
    del names["Severity"]
    return names


def _no_plugins(logger, namespace):
    """Register no plugin; the doubles have none."""
    return True


def public(cls):
    """Return the attributes of a class that a caller may name."""
    return sorted(name for name in dir(cls) if not name.startswith("_"))


def offer(name):
    """Return what the module `tensorrt` of this version holds."""
    table = json.loads((TABLES / (name + ".json")).read_text())
    found = implemented()
    RULES.update(table["rules"], version=table["version"])
    for key, value in found.items():
        if isinstance(value, type):
            _restrict(value, table["classes"].get(key, ()))
    _restrict(values.Severity, table["classes"]["ILogger.Severity"])
    offered = {key: value for key, value in found.items() if key in table["module"]}
    offered["__version__"] = table["version"]
    return offered


def _restrict(cls, names):
    for name in public(cls) + list(OPERATORS):
        if name not in names and name in vars(cls) and not hasattr(cls.__base__, name):
            delattr(cls, name)
    cls._offered = True
    cls.__module__ = "tensorrt.tensorrt"
    if issubclass(cls, values.Enumeration):
        cls.__members__ = dict(cls._members())
