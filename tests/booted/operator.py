"""What the tests do as the machine's operator: settings for a while, clients at work, and waiting for the daemon."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.booted.machine import Machine, wait_until
from tests.booted.package import MEMBER, PICTURE

SERVICE, SOCKET = "jetsel.service", "jetsel.socket"
READY_S = 60.0
LOAD = Path(__file__).with_name("load.py")


def main_pid(machine: Machine) -> int:
    """Return the daemon's process number in the machine, 0 where none runs."""
    return int(machine.show(SERVICE, "MainPID"))


def is_active(machine: Machine) -> bool:
    """Whether the daemon has said that it is ready, and runs."""
    return machine.show(SERVICE, "ActiveState") == "active"


def is_tripped(machine: Machine) -> bool:
    """Whether systemd has given up on the daemon, for having had to start it too often."""
    failed = machine.show(SERVICE, "ActiveState") == "failed"
    return failed and any("repeated too quickly" in entry["MESSAGE"] for entry in machine.seen(UNIT=SERVICE))


def begun_again(machine: Machine, before: int) -> None:
    """Wait until systemd has started another daemon than process `before`."""
    wait_until(lambda: main_pid(machine) not in (0, before), READY_S, machine.journal)


def ready_again(machine: Machine, before: int) -> int:
    """Wait until another daemon than process `before` is ready; return its process number."""
    wait_until(lambda: main_pid(machine) not in (0, before) and is_active(machine), READY_S, machine.journal)
    return main_pid(machine)


def started_clean(machine: Machine) -> int:
    """Forget failures and earlier starts, start the daemon anew, and return its process number."""
    machine.run("systemctl", "reset-failed", SERVICE, SOCKET)
    machine.run("systemctl", "restart", SERVICE)
    machine.run("systemctl", "reset-failed", SERVICE)
    return main_pid(machine)


@contextlib.contextmanager
def setting(machine: Machine, text: str) -> Iterator[int]:
    """Have other settings of [Service] or [Unit] while the block lasts; gives the process number of the daemon."""
    folder = f"/etc/systemd/system/{SERVICE}.d"
    machine.write(f"{folder}/test.conf", text)
    machine.run("systemctl", "daemon-reload")
    try:
        yield started_clean(machine)
    finally:
        machine.run("rm", "-r", folder)
        machine.run("systemctl", "daemon-reload")
        started_clean(machine)


@contextlib.contextmanager
def clients(machine: Machine, count: int = 4) -> Iterator[dict[str, int]]:
    """Have clients ask while the block lasts; gives a dictionary that then holds how their calls ended."""
    machine.write("/srv/load.py", LOAD.read_bytes())
    ended: dict[str, int] = {}
    command = ("/opt/jetsel/venv/bin/python", "/srv/load.py", str(count), PICTURE)
    process = machine.begin(*command, user=MEMBER)
    assert process.stdout is not None
    try:
        said = process.stdout.readline()
        assert said == "asking\n", (said, machine.journal())
        yield ended
        out, err = process.communicate(timeout=READY_S * 2)
        assert process.returncode == 0, err
        ended.update(json.loads(out))
    finally:
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=READY_S)
