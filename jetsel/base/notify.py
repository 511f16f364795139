"""Reports the daemon's state to the service manager, by datagrams to $NOTIFY_SOCKET (sd_notify(3))."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import MutableMapping

from jetsel.base.events import event

log = logging.getLogger("jetsel.daemon")

ADDRESS = "NOTIFY_SOCKET"  # names of environment variables
WATCHDOG_PERIOD, WATCHDOG_FOR = "WATCHDOG_USEC", "WATCHDOG_PID"
LONGEST_STATUS = 500  # characters of the status line
PATIENCE_S = 2.0  # wait for a service manager whose queue is full; then the message is lost


class Notifier:
    """Reports to the service manager (systemd); without one, every method does nothing. Threads may share it."""

    def __init__(self, address: str | None = None, watchdog_s: float | None = None) -> None:
        """address: value of $NOTIFY_SOCKET, None for no service manager. watchdog_s: longest time between two pings."""
        self.watchdog_s = watchdog_s if address else None
        self._address = ""
        self._socket: socket.socket | None = None  # kept open, so that a report needs no free descriptor
        self._has_failed = self._is_stopping = False
        self._lock = threading.Lock()  # ensures that no message follows STOPPING=1
        if address:
            # An abstract name begins with a zero byte, written as "@" (unix(7), sd_notify(3)).
            self._address = f"\0{address[1:]}" if address[0] == "@" else address
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            self._socket.settimeout(PATIENCE_S)

    @classmethod
    def from_environment(cls, environment: MutableMapping[str, str] | None = None) -> Notifier:
        """Return a notifier for the environment's variables (None: os.environ), and remove them for child processes.

        A watchdog meant for another process ($WATCHDOG_PID) is ignored (sd_watchdog_enabled(3)).
        """
        environment = os.environ if environment is None else environment
        names = (ADDRESS, WATCHDOG_PERIOD, WATCHDOG_FOR)
        address, period_us, watched_pid = (environment.pop(name, "") for name in names)
        is_ours = watched_pid in ("", str(os.getpid())) and period_us.isdecimal() and int(period_us) > 0
        return cls(address or None, int(period_us) / 1e6 if is_ours else None)

    def ready(self, status: str) -> None:
        """Report that the daemon serves, after its start or after a reload."""
        self._report("READY=1", status=status)

    def status(self, status: str) -> None:
        """Report in one line what the daemon does, for `systemctl status`."""
        self._report(status=status)

    def progress(self, status: str, patience_s: float) -> None:
        """Report the progress of a start or reload, which may take another patience_s from now on (systemd 236)."""
        self._report(f"EXTEND_TIMEOUT_USEC={round(patience_s * 1e6)}", status=status)

    def reloading(self, status: str) -> None:
        """Report that a reload begins; `ready` reports its end. Type=notify-reload needs the time (systemd 253)."""
        self._report("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}", status=status)

    def stopping(self, within_s: float, status: str) -> None:
        """Report that the daemon stops within `within_s`. Later reports do nothing: they would rearm the watchdog."""
        self._report("STOPPING=1", f"EXTEND_TIMEOUT_USEC={round(within_s * 1e6)}", status=status, is_last=True)

    def watchdog(self) -> bool:
        """Report that the daemon still works; return True if the service manager accepted the message."""
        with self._lock:
            return self._send("WATCHDOG=1")

    def close(self) -> None:
        """Close the socket; later reports do nothing."""
        with self._lock:
            if self._socket is not None:
                self._socket.close()
            self._socket = None

    def _report(self, *lines: str, status: str, is_last: bool = False) -> None:
        """Send lines such as READY=1, and the status on one line. is_last: send nothing afterwards."""
        one_line = "".join(c if c.isprintable() else " " for c in status)
        with self._lock:
            self._send(*lines, f"STATUS={one_line[:LONGEST_STATUS]}")
            self._is_stopping |= is_last

    def _send(self, *lines: str) -> bool:
        """Send the lines; return True if the service manager accepted them. The caller must hold the lock."""
        if self._socket is None or self._is_stopping:
            return False
        try:
            self._socket.sendto("\n".join(lines).encode(), self._address)
        except OSError as error:
            if not self._has_failed:
                fields = event("service-manager-lost")
                log.warning("cannot report to the service manager (%s): %s", lines[0], error, extra=fields)
            self._has_failed = True
            return False
        self._has_failed = False
        return True
