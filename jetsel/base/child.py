"""How a child Python is started in the user's folder, from which it imports nothing: one of our modules, or pip."""

from __future__ import annotations

import sys

_RUN = (
    "import sys; sys.path[:] = filter(None, sys.path); del sys.argv[0]; import runpy; "
    'runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)'
)
"""Does what `python -P -m` does, which Python 3.10 lacks. `-I` would also hide the packages of the user's own site."""


def python_command(module: str, *words: str) -> list[str]:
    """Return the command that runs a module, as `python -m` does, with these arguments."""
    return [sys.executable, "-c", _RUN, module, *words]
