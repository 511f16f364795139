"""Imports inside jetsel point down only."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jetsel
from tests import layers

PACKAGE = Path(jetsel.__file__).parent

DAEMON_LOADS = """
import importlib, pkgutil, sys
import jetsel.daemon
for module in pkgutil.walk_packages(jetsel.daemon.__path__, "jetsel.daemon."):
    importlib.import_module(module.name)
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_every_import_points_down() -> None:
    assert layers.findings(PACKAGE) == []


def test_the_running_daemon_loads_no_heavy_library() -> None:
    done = subprocess.run([sys.executable, "-c", DAEMON_LOADS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert "cv2" in loaded  # the daemon itself was there
    assert loaded & layers.NOT_IN_THE_DAEMON == set()
