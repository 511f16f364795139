"""Imports inside jetsel point down only, and the check that says so can fail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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


def tree(folder: Path, files: dict[str, str]) -> Path:
    """A package `jetsel` under `folder` with these files."""
    package = folder / "jetsel"
    for name, text in {"__init__.py": "", **files}.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return package


def test_every_import_points_down() -> None:
    assert layers.findings(PACKAGE) == []


def test_the_running_daemon_loads_no_heavy_library() -> None:
    done = subprocess.run([sys.executable, "-c", DAEMON_LOADS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert "cv2" in loaded  # the daemon itself was there
    assert loaded & layers.NOT_IN_THE_DAEMON == set()


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param(
            {"wire.py": "from jetsel.runtime import driver", "runtime/driver.py": ""},
            "wire imports runtime.driver: runtime stands above wire",
            id="upward",
        ),
        pytest.param(
            {"premodel/knn.py": "from ..features import table", "features/__init__.py": "table = ()"},
            "premodel.knn imports features: premodel and features stand on one level",
            id="from island to island, relative",
        ),
        pytest.param(
            {"helpers.py": ""},
            "helpers: nobody placed it; give `helpers` a level in tests/layers.py",
            id="unplaced",
        ),
        pytest.param(
            {"client.py": "import jetsel.image", "image.py": ""},
            "client imports image: of ours, client may import endpoint, errors, wire",
            id="the client's short list",
        ),
        pytest.param(
            {"engines/host/serving.py": "", "engines/onnx.py": "from .host import serving"},
            "engines.onnx imports engines.host.serving: only engines.hosted may",
            id="the host's importers",
        ),
        pytest.param(
            {
                "daemon/server.py": "import jetsel.zoo",
                "zoo/__init__.py": "from .torch import x",
                "zoo/torch.py": "import torch.onnx",
            },
            "the daemon reaches torch: daemon.server -> zoo -> zoo.torch -> torch",
            id="a heavy library at two removes",
        ),
    ],
)
def test_what_breaks_the_table_is_named(tmp_path: Path, files: dict[str, str], expected: str) -> None:
    assert layers.findings(tree(tmp_path, files)) == [expected]


def test_what_the_table_allows_passes(tmp_path: Path) -> None:
    package = tree(
        tmp_path,
        {
            "__init__.py": "def __getattr__(name):\n    from jetsel.client import Client\n    return Client\n",
            "__main__.py": "from jetsel.cli import main",
            "cli/__init__.py": "from jetsel.daemon import server\nimport skimage.data\nmain = server",
            "client/__init__.py": "from jetsel.client.blocking import Client",
            "client/blocking.py": "import numpy\nfrom jetsel import wire\nfrom jetsel.errors import A\nClient = 1",
            "daemon/server.py": "from jetsel import __version__, wire\nfrom jetsel.engines.hosted import Hosted",
            "engines/hosted.py": "from jetsel.engines import host\nHosted = host",
            "engines/host/__init__.py": "",
            "engines/host/serving.py": "from .messages import Channel",
            "engines/host/messages.py": "import socket\nChannel = 1",
            "wire.py": "from jetsel.errors import BusyError",
            "errors.py": "A = BusyError = 1",
        },
    )
    assert layers.findings(package) == []
