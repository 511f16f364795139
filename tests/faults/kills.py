"""Kill the daemon at random moments under a real systemd: `python -m tests.faults.kills --count 30`, as root.

The package of `make deb` is installed in a booted Debian with a calibration of its own, clients ask all the time, and
SIGKILL comes at any moment, also while the daemon loads or reloads. Each time systemd must have it ready again, with
nothing cleaned up by hand and the calibration untouched. Kills are spaced under the unit's start limit.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.booted.machine import Machine
from tests.booted.operator import SERVICE, clients, kill, main_pid, ready_again, settle, started_clean
from tests.booted.package import built, install
from tests.booted.release import copy
from tests.waiting import until

STATE = "/var/lib/jetsel"
FAMILY = f"{STATE}/calibrations/starter"
SHIPPED = "jetsel/zoo/starter/calibration"
STARTS = 0.25  # the share of kills that come soon after the one before, as the daemon starts
LOADS_S = 1.0  # from the start to ready, about
RELOADS = 0.2  # the share of the others that come just after a reload was asked for
RESTART_S = 5.0  # a start comes this much later than its kill, at most
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
        kill_spaced(machine, count)
    return 0


def kill_spaced(machine: Machine, count: int) -> None:
    """Kill so many times; fails where the daemon does not come back, a call is lost, or the calibration changes."""
    place_a_calibration(machine)
    started_clean(machine)
    contents, (most, interval_s), gone = hashes(machine), limit(machine), 0
    random_ = random.Random(SEED)
    killed_s: list[float] = []
    waits_s, while_starting, while_reloading = [], 0, 0
    with clients(machine) as ended:
        for _ in range(count):
            if killed_s and random_.random() < STARTS:
                until(lambda before=gone: main_pid(machine) not in (0, before))
                time.sleep(random_.uniform(0, LOADS_S))
            else:
                ready_again(machine, gone)
                waits_s += [time.monotonic() - killed_s[-1]] if killed_s else []
                assert hashes(machine) == contents, "the calibration changed"
                time.sleep(random_.uniform(0, 2 * interval_s / most))
            time.sleep(max(0.0, killed_s[-most] + interval_s - time.monotonic()) if len(killed_s) >= most else 0.0)
            if random_.random() < RELOADS and machine.show(SERVICE, "ActiveState") == "active":
                machine.run("systemctl", "reload", "--no-block", SERVICE)
                while_reloading += 1
            gone = until(lambda: main_pid(machine))
            while_starting += machine.show(SERVICE, "ActiveState") == "activating"
            kill(machine, "KILL", gone)
            killed_s.append(time.monotonic())
        ready_again(machine, gone)
    assert set(ended) == {"answered"}, ended
    assert hashes(machine) == contents, "the calibration changed"
    (family,) = json.loads(machine.run("jetsel", "status", "--json"))["families"]
    assert family["calibration_identity"]["number"] == 1, family["calibration_identity"]
    print(f"{count} kills in {(killed_s[-1] - killed_s[0]) / 60:.0f} min: {while_starting} while the daemon started,")
    print(f"{while_reloading} just after a reload was asked for; ready again each time, nothing cleaned up by hand")
    print(f"from the kill to ready: median {statistics.median(waits_s):.2f} s, longest {max(waits_s):.2f} s")
    print(f"{ended['answered']} calls of 4 clients, all answered; {len(contents)} files of the calibration unchanged")


def limit(machine: Machine) -> tuple[int, float]:
    """Return how many kills may come within how many seconds without tripping the unit's start limit."""
    minutes, _, seconds = machine.show(SERVICE, "StartLimitIntervalUSec").partition("min")
    interval_s = float(minutes) * 60 + float(seconds.strip().removesuffix("s") or 0)
    return int(machine.show(SERVICE, "StartLimitBurst")) - 1, interval_s + RESTART_S


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
