"""Make an interpreter that has the doubles.

It is a virtual environment of a few files and no packages of its own: FOLDER/bin/python is a link to a real Python,
and a .pth file names the folders of the doubles and those in which that Python has numpy and ONNX Runtime. So every
option of the interpreter works, -I included (which hides PYTHONPATH, not a virtual environment), file descriptors are
inherited and there is no process between. The generation and the board are in the .pth file; the environment variable
JETSEL_DOUBLE, where it is set, comes before that board.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent.resolve()
GENERATIONS = ("8.2", "8.6", "10", "11")

_ASK = """
import json, os, site, sys
home = os.path.dirname(os.path.realpath(sys.executable))
print(json.dumps({"executable": os.path.realpath(sys.executable), "home": home, "version": sys.version_info[:2],
                  "packages": site.getsitepackages()}))
"""


def make_interpreter(
    folder: Path,
    tensorrt: str | None,
    *,
    python: str = sys.executable,
    board: dict[str, Any] | Path | None = None,
    pycuda: bool = True,
) -> Path:
    """Return the path of an interpreter that imports the doubles of this generation, of GENERATIONS.

    tensorrt: None for none. python: the real one, whose packages it sees. board: of `trt_double/board.py`, or the path
    of a file that holds one. pycuda: False for an interpreter without it.
    """
    asked = subprocess.run([python, "-I", "-c", _ASK], check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(asked.stdout)
    packages = folder / "lib" / "python{}.{}".format(*found["version"]) / "site-packages"
    packages.mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "pyvenv.cfg").write_text(f"home = {found['home']}\ninclude-system-site-packages = false\n")
    (folder / "bin" / "python").symlink_to(found["executable"])
    lines = []
    if tensorrt is not None:
        offer = f"from trt_double.offer import offer\n\nglobals().update(offer({tensorrt!r}))\ndel offer\n"
        (packages / "tensorrt.py").write_text(offer)
    if tensorrt is not None or pycuda:
        lines.append(str(HERE / "common"))
    if not pycuda:
        lines.append("import sys; sys.modules['pycuda'] = None")
    lines += [f"import site; site.addsitedir({path!r})" for path in found["packages"]]
    if board is not None:
        text = str(board) if isinstance(board, Path) else json.dumps(board)
        lines.append(f"import os; os.environ.setdefault('JETSEL_DOUBLE', {text!r})")
    (packages / "doubles.pth").write_text("\n".join(lines) + "\n")
    return folder / "bin" / "python"
