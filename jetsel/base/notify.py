"""Reports the daemon's life to the service manager, by datagrams to $NOTIFY_SOCKET (sd_notify(3))."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import MutableMapping

from jetsel.base.events import event

log = logging.getLogger("jetsel.daemon")

ADDRESS = "NOTIFY_SOCKET"
WATCHDOG_PERIOD, WATCHDOG_FOR = "WATCHDOG_USEC", "WATCHDOG_PID"
LONGEST_STATUS = 500  # characters of one line that people read
PATIENCE_S = 2.0  # for a service manager whose queue is full; what it does not take by then is lost


class Notifier:
    """Tells the service manager; without one every method does nothing. Any thread may call."""

    def __init__(self, address: str | None = None, watchdog_s: float | None = None) -> None:
        """address: as in $NOTIFY_SOCKET. watchdog_s: the longest time between two `watchdog`; None: none is due."""
        self.watchdog_s = watchdog_s if address else None
        self._address = ""
        self._socket: socket.socket | None = None  # kept, so that the last free descriptor is not needed for a word
        self._has_failed = self._is_stopping = False
        self._lock = threading.Lock()  # so that nothing follows STOPPING=1
        if address:
            # An abstract name begins with a zero byte, which is written as "@" (unix(7), sd_notify(3)).
            self._address = f"\0{address[1:]}" if address[0] == "@" else address
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            self._socket.settimeout(PATIENCE_S)

    @classmethod
    def from_environment(cls, environment: MutableMapping[str, str] | None = None) -> Notifier:
        """Return what the environment asks for, and take it out, so that no child speaks in the daemon's name.

        A watchdog that is meant for another process ($WATCHDOG_PID) is none of ours (sd_watchdog_enabled(3)).
        """
        environment = os.environ if environment is None else environment
        address, period_us, process = (environment.pop(name, "") for name in (ADDRESS, WATCHDOG_PERIOD, WATCHDOG_FOR))
        is_ours = process in ("", str(os.getpid())) and period_us.isdecimal() and int(period_us) > 0
        return cls(address or None, int(period_us) / 1e6 if is_ours else None)

    def ready(self, status: str) -> None:
        """The daemon serves: after its start, and after a reload."""
        self._tell("READY=1", status=status)

    def status(self, text: str) -> None:
        """Say in one line what the daemon does, for `systemctl status`."""
        self._tell(status=text)

    def progress(self, words: str, patience_s: float) -> None:
        """Say how far the start or reload is, which may take so much longer from now (systemd 236)."""
        self._tell(f"EXTEND_TIMEOUT_USEC={round(patience_s * 1e6)}", status=words)

    def reloading(self, status: str) -> None:
        """A reload begins; `ready` says that it is over. The clock's time is for Type=notify-reload (systemd 253)."""
        self._tell("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}", status=status)

    def stopping(self, within_s: float, status: str) -> None:
        """The daemon stops, which may take so long. Nothing is said any more: a feeding would arm the watchdog anew."""
        self._tell("STOPPING=1", f"EXTEND_TIMEOUT_USEC={round(within_s * 1e6)}", status=status, is_last=True)

    def watchdog(self) -> bool:
        """Say that the daemon works; return whether that was taken."""
        with self._lock:
            return self._send("WATCHDOG=1")

    def close(self) -> None:
        """Say no more."""
        with self._lock:
            if self._socket is not None:
                self._socket.close()
            self._socket = None

    def _tell(self, *lines: str, status: str, is_last: bool = False) -> None:
        one_line = "".join(c if c.isprintable() else " " for c in status)
        with self._lock:
            self._send(*lines, f"STATUS={one_line[:LONGEST_STATUS]}")
            self._is_stopping |= is_last

    def _send(self, *lines: str) -> bool:
        """Return whether it was taken. The caller holds the lock."""
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
