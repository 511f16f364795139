"""Imports inside jetsel point down only."""

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


def test_a_circle_inside_a_package_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "jetsel" / "wire"
    folder.mkdir(parents=True)
    (folder / "a.py").write_text("from jetsel.wire.b import B\n")
    (folder / "b.py").write_text("if TYPE_CHECKING:\n    from jetsel.wire import a\n")
    (found,) = layers.findings(tmp_path / "jetsel")
    assert found.startswith("a circle of imports: wire.")
    assert "wire.a -> wire.b" in found


def test_a_command_that_imports_the_daemon_is_found_unless_it_is_serve(tmp_path: Path) -> None:
    for name, source in {
        "daemon/run.py": "",
        "cli/serve.py": "from jetsel.daemon import run\n",
        "cli/doctor.py": "def look():\n    from jetsel.daemon import run\n",
    }.items():
        path = tmp_path / "jetsel" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    found = layers.findings(tmp_path / "jetsel")
    assert found == ["cli.doctor imports daemon.run: only cli.serve may"]


def test_the_running_daemon_loads_no_heavy_library() -> None:
    done = subprocess.run([sys.executable, "-c", DAEMON_LOADS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert "cv2" in loaded  # the daemon itself was there
    assert loaded & layers.NOT_IN_THE_DAEMON == set()
