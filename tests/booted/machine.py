"""A Debian booted by systemd-nspawn, and commands run in it.

There is no machined here to ask, so commands enter the namespaces of the container's first process. It has a network of
its own with nothing in it: what works in it works without one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

BOOT_S, CALL_S = 60.0, 240.0
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
NSPAWN = ("systemd-nspawn", "--register=no", "--keep-unit", "--private-network", "--quiet", "--boot")

T = TypeVar("T")


class Machine:
    """The container while `with` lasts. Its files are under `root` on the host, but for /run and /tmp."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._console = root.with_name(root.name + ".console")
        self._leader: int | None = None

    def __enter__(self) -> Machine:
        # Shut down where this process ends without having ended it.
        command = ("setpriv", "--pdeathsig", "TERM", *NSPAWN, "-D", str(self.root))
        with self._console.open("wb") as console:
            self._nspawn = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=console, stderr=console)
        try:
            self._leader = wait_until(self._find_leader, BOOT_S, self._said)
            wait_until(self._is_booted, BOOT_S, self._said)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def try_(self, *command: str, user: str = "root", timeout_s: float = CALL_S) -> subprocess.CompletedProcess[str]:
        """Run a command in the container as a user of it; whatever it ends with is returned."""
        return subprocess.run(
            self._entering(command, user), env=ENVIRONMENT, capture_output=True, text=True, timeout=timeout_s
        )

    def run(self, *command: str, user: str = "root", timeout_s: float = CALL_S) -> str:
        """Run a command that must succeed; return what it printed."""
        done = self.try_(*command, user=user, timeout_s=timeout_s)
        assert done.returncode == 0, (
            f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}\n"
            f"{self.journal()}"
        )
        return done.stdout

    def begin(self, *command: str, user: str = "root") -> subprocess.Popen[str]:
        """Start a command and return it; whoever asked waits for it."""
        return subprocess.Popen(
            self._entering(command, user),
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def signal(self, name: str, process: int) -> None:
        """Send a signal to a process of the container, if it is still there."""
        assert process > 1, f"{process} is no process of the container's to signal"
        self.try_("sh", "-c", f"kill -{name} {process}")

    def show(self, unit: str, name: str) -> str:
        """Return one property of a unit."""
        return self.run("systemctl", "show", "--value", "-p", name, unit).strip()

    def seen(self, unit: str = "jetsel.service", **fields: str) -> list[dict[str, Any]]:
        """Return the journal's entries of a unit that have these fields."""
        matches = [f"{name}={value}" for name, value in fields.items()]
        told = self.run("journalctl", "--no-pager", "-o", "json", "-u", unit, *matches)
        return [json.loads(line) for line in told.splitlines()]

    def events(self, name: str, unit: str = "jetsel.service") -> list[dict[str, Any]]:
        """Return the journal's entries of a unit that end with this event of the daemon's log."""
        return [entry for entry in self.seen(unit) if f" [event={name} " in entry["MESSAGE"].replace("]", " ")]

    def journal(self, unit: str = "jetsel.service") -> str:
        """Return the end of a unit's journal, for whoever reads why a test failed."""
        return self.try_("journalctl", "--no-pager", "-n", "40", "-u", unit).stdout

    def write(self, path: str, text: str | bytes) -> None:
        """Write a file that is not in /run or /tmp, with its folders."""
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode() if isinstance(text, str) else text)

    def _entering(self, command: Sequence[str], user: str) -> tuple[str, ...]:
        as_user = () if user == "root" else ("setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups")
        return ("nsenter", "--target", str(self._leader), "--all", *as_user, *command)

    def _find_leader(self) -> int | None:
        """Return the process that is number 1 in the container, once there is one."""
        assert self._nspawn.poll() is None, f"systemd-nspawn ended: {self._said()}"
        for child in Path(f"/proc/{self._nspawn.pid}/task/{self._nspawn.pid}/children").read_text().split():
            status = Path(f"/proc/{child}/status").read_text()
            (line,) = (line for line in status.splitlines() if line.startswith("NSpid:"))
            if line.split()[-1] == "1" and len(line.split()) > 2:
                return int(child)
        return None

    def _is_booted(self) -> bool:
        return self.try_("systemctl", "is-system-running").stdout.strip() in ("running", "degraded")

    def _said(self) -> str:
        return self._console.read_text(errors="replace")[-2000:]

    def _end(self) -> None:
        """End it as a power cut does: all of it goes with its first process, and systemd-nspawn after that."""
        if self._leader is not None and self._nspawn.poll() is None:
            os.kill(self._leader, signal.SIGKILL)
        else:
            self._nspawn.kill()
        self._nspawn.wait()


def wait_until(look: Callable[[], T | None], limit_s: float, why: Callable[[], str] = str) -> T:
    """Look until there is something true, and return it; fails after so long with what `why` says."""
    until = time.monotonic() + limit_s
    while not (found := look()):
        assert time.monotonic() < until, f"not within {limit_s:g} s: {why()}"
        time.sleep(0.05)
    return found
