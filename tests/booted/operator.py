"""What the tests do as the machine's operator: settings for a while, clients at work, and waiting for the daemon."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

from tests.booted.machine import Machine
from tests.booted.package import MEMBER, PICTURE, STRANGER, hang_pictures
from tests.waiting import until

SERVICE, SOCKET, GATEWAY = "jetsel.service", "jetsel.socket", "jetsel-gateway.service"
CONFIG = "/etc/jetsel/jetsel.toml"
LOAD = Path(__file__).with_name("load.py")


def main_pid(machine: Machine) -> int:
    """Return the daemon's process number in the machine, 0 where none runs."""
    return int(machine.show(SERVICE, "MainPID"))


def kill(machine: Machine, name: str, process: int) -> None:
    """Send a signal to a process of the container, if it is still there."""
    assert process > 1, f"{process} is no process of the container's to signal"
    machine.try_("sh", "-c", f"kill -{name} {process}")


def ready_again(machine: Machine, before: int) -> int:
    """Wait until another daemon than process `before` is ready; return its process number."""
    until(lambda: main_pid(machine) not in (0, before) and machine.show(SERVICE, "ActiveState") == "active")
    return main_pid(machine)


def settle(machine: Machine) -> None:
    """Have the two users, and the pictures that they ask about."""
    machine.run("useradd", "--groups", "jetsel", MEMBER)
    machine.run("useradd", STRANGER)
    hang_pictures(machine.root)


def started_clean(machine: Machine) -> int:
    """Forget failures and earlier starts, start the daemon anew, and return its process number."""
    machine.run("systemctl", "reset-failed", SERVICE, SOCKET)
    machine.run("systemctl", "restart", SERVICE)
    machine.run("systemctl", "reset-failed", SERVICE)
    return main_pid(machine)


@contextlib.contextmanager
def configuration(machine: Machine, text: str) -> Iterator[None]:
    """Have a configuration file while the block lasts, which nobody is told of; then a daemon without it."""
    machine.write(CONFIG, text)
    try:
        yield
    finally:
        machine.run("rm", CONFIG)
        started_clean(machine)


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
    with machine.begin("/opt/jetsel/venv/bin/python", "/srv/load.py", str(count), PICTURE, user=MEMBER) as process:
        try:
            assert process.stdout.readline() == "asking\n", machine.journal()
            yield ended
            out, err = process.communicate(timeout=120)
            assert process.returncode == 0, err
            ended.update(json.loads(out))
        finally:
            process.kill()
