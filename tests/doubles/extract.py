"""List the public names of real TensorRT bindings: `python -m tests.doubles.extract WHEEL... --python INTERPRETER`.

A wheel's own Python files and its extension module are enough: the extension is imported in a process of its own over
stand-in shared libraries, whose functions are there and do nothing. So neither a GPU nor TensorRT's libraries (hundreds
of megabytes) are needed, and nothing of NVIDIA's is kept but names. The interpreter is one that the wheel was built
for, and `gcc` and `nm` are on the path. The wheels come from
`pip download --no-deps --python-version 3.10 --only-binary :all: tensorrt==8.6.0` (or `tensorrt==8.5.3.1`,
`tensorrt-cu12-bindings==10.3.0`, `tensorrt-cu13-bindings==11.0.0.114`).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

SYMBOLS = Path(__file__).parent / "symbols"
COMMAND = "python -m tests.doubles.extract"
# Special methods that a caller can rely on without naming them: which operators a type supports.
OPERATORS = ("__eq__", "__getitem__", "__index__", "__int__", "__iter__", "__len__", "__rlshift__")

_LIST = f"""
import importlib, json, sys
sys.path[:0] = [folder for folder in sys.argv[1:2] if folder]
trt = importlib.import_module(sys.argv[2])
operators = {OPERATORS!r}

def names(cls):
    public = [name for name in dir(cls) if not name.startswith("_")]
    own = [name for name in operators if getattr(cls, name, None) is not getattr(object, name, None)]
    return sorted(public) + own

def classes(owner, prefix):
    for name in sorted(vars(owner)):
        value = getattr(owner, name)
        if isinstance(value, type) and not name.startswith("_") and value.__module__.split(".")[0] == sys.argv[2]:
            yield prefix + name, names(value)
            if not prefix:
                yield from classes(value, name + ".")

module = sorted(name for name, value in vars(trt).items()
                if not name.startswith("_") and type(value) is not type(sys))
print(json.dumps({{"version": trt.__version__, "module": module, "classes": dict(classes(trt, ""))}}))
"""


def extract(wheel: Path, python: str) -> dict[str, Any]:
    """Return {"version", "module": [name], "classes": {class: [name]}} of the bindings in `wheel`.

    python: an interpreter of the version that the wheel's name says. Raises ValueError where the wheel holds no
    extension module `tensorrt.so`, subprocess.CalledProcessError where it does not import.
    """
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        members = [name for name in archive.namelist() if name.endswith((".py", "/tensorrt.so"))]
        extension = next((name for name in members if name.endswith("/tensorrt.so")), None)
        if extension is None:
            raise ValueError(f"{wheel.name} holds no tensorrt.so: give a wheel of the bindings")
        archive.extractall(folder, members)
        libraries = _stand_ins(Path(folder) / extension, Path(folder) / "libraries")
        return installed(python, extension.split("/")[0], folder, {"LD_LIBRARY_PATH": str(libraries)})


def installed(python: str, package: str = "tensorrt", folder: str = "", extra: dict[str, str] | None = None) -> Any:
    """Return the same of the package that this interpreter imports, from `folder` where that is given."""
    command = [python, "-I", "-c", _LIST, folder, package]
    found = subprocess.run(command, env={**os.environ, **(extra or {})}, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(found.stdout)


def _stand_ins(extension: Path, folder: Path) -> Path:
    """Build, in `folder`, a library for each of NVIDIA's that the extension wants, with the functions it calls."""
    folder.mkdir()
    needed = _output("readelf", "-d", str(extension))
    libraries = re.findall(r"NEEDED.*\[(libnv[^]]+)\]", needed)
    undefined = _output("nm", "-D", "--undefined-only", str(extension)).split()
    functions = [name for name in undefined if re.fullmatch(r"\w{2,}", name) and not re.match(r"_?Py", name)]
    source = folder / "functions.c"
    source.write_text("".join(f"void *{name}(void) {{ return 0; }}\n" for name in functions))
    for library in libraries:
        compiler = ["gcc", "-w", "-fno-builtin", "-shared", "-fPIC", f"-Wl,-soname,{library}"]
        subprocess.run([*compiler, "-o", str(folder / library), str(source)], check=True)
    return folder


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def write(listed: dict[str, Any], path: Path) -> None:
    """Write what `extract` returned, or any such list, one class a line."""
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in listed.items() if key != "classes"]
    classes = ",\n".join(f"  {json.dumps(name)}: {json.dumps(names)}" for name, names in listed["classes"].items())
    path.write_text("{\n" + ",\n".join(lines) + ',\n"classes": {\n' + classes + "\n}\n}\n")


def main() -> None:
    """Write one list a wheel."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__.splitlines()[0])
    parser.add_argument("wheels", nargs="+", type=Path)
    parser.add_argument("--python", default=sys.executable, help="an interpreter that the wheels were built for")
    arguments = parser.parse_args()
    for wheel in arguments.wheels:
        listed = extract(wheel, arguments.python)
        listed["made_by"] = f"{COMMAND} {wheel.name}"
        path = SYMBOLS / f"{listed['version']}.json"
        write(listed, path)
        print(f"{path.name}: {len(listed['module'])} names, {len(listed['classes'])} classes")


if __name__ == "__main__":
    main()
