"""A distribution booted by systemd-nspawn, and commands run in it.

There is no machined here to ask, so commands enter the namespaces of the container's first process. It has a network of
its own with nothing in it: what works in it works without one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from tests.waiting import until

CALL_S = 240.0
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
NSPAWN = ("systemd-nspawn", "--register=no", "--keep-unit", "--private-network", "--quiet")


class Machine:
    """The container while `with` lasts. Its files are under `root` on the host, but for /run and /tmp."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._leader: int | None = None

    def __enter__(self) -> Machine:
        # Shut down where this process ends without having ended it.
        command = ("setpriv", "--pdeathsig", "TERM", *NSPAWN, "--boot", "-D", str(self.root))
        console = subprocess.DEVNULL
        self._nspawn = subprocess.Popen(command, stdin=console, stdout=console, stderr=console)
        try:
            self._leader = until(self._find_leader)
            until(lambda: self.try_("systemctl", "is-system-running").stdout.strip() in ("running", "degraded"))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End it as a power cut does: all of it goes with its first process, and systemd-nspawn after that."""
        if self._leader is not None and self._nspawn.poll() is None:
            os.kill(self._leader, signal.SIGKILL)
        else:
            self._nspawn.kill()
        self._nspawn.wait()

    def try_(self, *command: str, user: str = "root", timeout_s: float = CALL_S) -> subprocess.CompletedProcess[str]:
        """Run a command in the container as a user of it; whatever it ends with is returned."""
        entering = self._entering(command, user)
        return subprocess.run(entering, env=ENVIRONMENT, capture_output=True, text=True, timeout=timeout_s)

    def run(self, *command: str, user: str = "root", timeout_s: float = CALL_S) -> str:
        """Run a command that must succeed; return what it printed."""
        done = self.try_(*command, user=user, timeout_s=timeout_s)
        said = f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}\n"
        assert done.returncode == 0, f"{' '.join(command)} ended with {done.returncode}:\n{said}{self.journal()}"
        return done.stdout

    def begin(self, *command: str, user: str = "root") -> subprocess.Popen[str]:
        """Start a command with pipes as its streams and return it; whoever asked waits for it."""
        pipe = subprocess.PIPE
        entering = self._entering(command, user)
        return subprocess.Popen(entering, env=ENVIRONMENT, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

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

    def journal(self) -> str:
        """Return the end of the service's journal, for whoever reads why a test failed."""
        return self.try_("journalctl", "--no-pager", "-n", "40", "-u", "jetsel.service").stdout

    def write(self, path: str, text: str | bytes) -> None:
        """Write a file that is not in /run or /tmp, with its folders."""
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode() if isinstance(text, str) else text)

    def _entering(self, command: tuple[str, ...], user: str) -> tuple[str, ...]:
        as_user = () if user == "root" else ("setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups")
        return ("nsenter", "--target", str(self._leader), "--all", *as_user, *command)

    def _find_leader(self) -> int | None:
        """Return the process that is number 1 in the container, once there is one."""
        assert self._nspawn.poll() is None, "systemd-nspawn ended"
        for child in Path(f"/proc/{self._nspawn.pid}/task/{self._nspawn.pid}/children").read_text().split():
            status = Path(f"/proc/{child}/status").read_text()
            (line,) = (line for line in status.splitlines() if line.startswith("NSpid:"))
            if line.split()[-1] == "1" and len(line.split()) > 2:
                return int(child)
        return None
