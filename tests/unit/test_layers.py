"""What every file keeps to: imports point down, what serves loads little and reads no wall clock, tests have rules."""

import re
import subprocess
import sys
from pathlib import Path

import jetsel
from tests import layers, rules

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


def test_every_test_holds_to_the_rules() -> None:
    assert rules.findings(Path(__file__).parents[1]) == []


def test_the_running_daemon_loads_no_heavy_library() -> None:
    done = subprocess.run([sys.executable, "-c", DAEMON_LOADS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert "cv2" in loaded  # the daemon itself was there
    assert loaded & layers.NOT_IN_THE_DAEMON == set()


WALL_CLOCK = re.compile(r"\btime\.time(_ns)?\(|\.(now|today|utcnow)\(")
SERVES = ("daemon", "runtime", "client", "wire")  # by the monotonic clock: one without a battery jumps by years


def test_no_file_of_what_serves_reads_the_wall_clock() -> None:
    paths = [path for part in SERVES for path in (PACKAGE / part).rglob("*.py")]
    assert [str(path) for path in paths if WALL_CLOCK.search(path.read_text("utf-8"))] == []
