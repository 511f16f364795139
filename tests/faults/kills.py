"""Kill the daemon at random moments under a real systemd: `python -m tests.faults.kills --count 30`, as root.

The package of `make deb` is installed in a booted Debian with a calibration of its own, clients ask all the time, and
SIGKILL comes at any moment, also while the daemon loads or reloads. Each time systemd must have it ready again, with
nothing cleaned up by hand and the calibration untouched. The unit's start limit is lifted meanwhile.
"""

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.booted.machine import Machine
from tests.booted.operator import SERVICE, clients, kill, main_pid, ready_again, setting, settle
from tests.booted.package import built, install
from tests.booted.release import copy
from tests.waiting import until

STATE = "/var/lib/jetsel"
FAMILY = f"{STATE}/calibrations/starter"
SHIPPED = "jetsel/zoo/starter/calibration"
NO_LIMIT = "[Unit]\nStartLimitIntervalSec=0\n"
STARTS = 0.25  # the share of kills that come soon after the one before, as the daemon starts
LOADS_S = 1.0  # from the start to ready, about
RELOADS = 0.2  # the share of the others that come just after a reload was asked for
SEED = 6


def main() -> int:
    """Print what came of it; return 0 where all of it was as it must be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=30, help="kills (default: 30)")
    count = parser.parse_args().count
    package = built()
    if package is None:
        print("there is no package of this version in dist/: run make deb", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="jetsel-kills-") as folder, Machine(copy(Path(folder) / "root")) as machine:
        install(machine, package.main)
        settle(machine)
        kill_often(machine, count)
    return 0


def kill_often(machine: Machine, count: int) -> None:
    """Kill so many times; fails where the daemon does not come back, a call is lost, or the calibration changes."""
    place_a_calibration(machine)
    contents, random_, gone, killed_s = hashes(machine), random.Random(SEED), 0, 0.0
    waits_s: list[float] = []
    with setting(machine, NO_LIMIT), clients(machine) as ended:
        for number in range(count):
            if number and random_.random() < STARTS:
                until(lambda before=gone: main_pid(machine) not in (0, before))
                time.sleep(random_.uniform(0, LOADS_S))
            else:
                ready_again(machine, gone)
                waits_s += [time.monotonic() - killed_s] if number else []
                assert hashes(machine) == contents, "the calibration changed"
                time.sleep(random_.uniform(0, LOADS_S))
                if random_.random() < RELOADS:
                    machine.run("systemctl", "reload", "--no-block", SERVICE)
            gone = until(lambda: main_pid(machine))
            kill(machine, "KILL", gone)
            killed_s = time.monotonic()
        ready_again(machine, gone)
    assert set(ended) == {"answered"}, ended
    assert hashes(machine) == contents, "the calibration changed"
    (family,) = json.loads(machine.run("jetsel", "status", "--json"))["families"]
    assert family["calibration_identity"]["number"] == 1, family["calibration_identity"]
    print(f"{count} kills, ready again each time, nothing cleaned up by hand")
    print(f"from the kill to ready: median {statistics.median(waits_s):.2f} s, longest {max(waits_s):.2f} s")
    print(f"{ended['answered']} calls of 4 clients, all answered; {len(contents)} files of the calibration unchanged")


def place_a_calibration(machine: Machine) -> None:
    """Install the calibration that ships with the models as one of the owner's, so that there is one to lose."""
    (shipped,) = machine.run("sh", "-c", f"echo /opt/jetsel/venv/lib/python3*/site-packages/{SHIPPED}").split()
    machine.run("mkdir", "-p", FAMILY)
    machine.run("cp", "-r", shipped, f"{FAMILY}/1")
    machine.run("ln", "-sfn", "1", f"{FAMILY}/current")
    machine.run("chown", "-R", "jetsel:jetsel", f"{STATE}/calibrations")


def hashes(machine: Machine) -> list[str]:
    """Return a line with the hash of each file of the calibration."""
    return sorted(machine.run("find", f"{FAMILY}/", "-type", "f", "-exec", "sha256sum", "{}", "+").splitlines())


if __name__ == "__main__":
    sys.exit(main())
