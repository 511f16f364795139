"""What the service manager is told of the daemon's life, by datagrams to $NOTIFY_SOCKET (sd_notify(3))."""

from __future__ import annotations

import logging
import os
import socket
import struct
import threading
import time
from collections.abc import MutableMapping

from jetsel.events import event

log = logging.getLogger("jetsel.daemon")

ADDRESS = "NOTIFY_SOCKET"
WATCHDOG_PERIOD, WATCHDOG_FOR = "WATCHDOG_USEC", "WATCHDOG_PID"
LONGEST_STATUS = 500  # characters of one line that people read
PATIENCE_S = 2  # for a service manager whose queue is full


class Notifier:
    """Tells the service manager; without one every method does nothing. Any thread may call."""

    def __init__(self, address: str | None = None, watchdog_s: float | None = None) -> None:
        """address: as in $NOTIFY_SOCKET. watchdog_s: the longest time between two `watchdog`, None where none is due.

        Raises ValueError where the address is neither an absolute path nor an abstract name.
        """
        self.watchdog_s = watchdog_s if address else None
        self._address: bytes | None = None
        self._socket: socket.socket | None = None  # kept, so that the last free descriptor is not needed for a word
        self._has_failed = False
        self._is_stopping = False
        self._lock = threading.Lock()  # so that nothing follows STOPPING=1
        if not address:
            return
        if address[0] not in "/@" or len(address) < 2:
            raise ValueError(f"{address!r} is no path and no abstract name")
        # An abstract name begins with a zero byte, which is written as "@" (unix(7), sd_notify(3)).
        self._address = (b"\0" if address[0] == "@" else address[:1].encode()) + os.fsencode(address[1:])
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", PATIENCE_S, 0))

    @classmethod
    def from_environment(cls, environment: MutableMapping[str, str] | None = None) -> Notifier:
        """Return what the environment asks for, and take it out, so that no child speaks in the daemon's name.

        A watchdog that is meant for another process ($WATCHDOG_PID) is none of ours (sd_watchdog_enabled(3)).
        """
        environment = os.environ if environment is None else environment
        address, period_us, process = (environment.pop(name, None) for name in (ADDRESS, WATCHDOG_PERIOD, WATCHDOG_FOR))
        watchdog_s = None
        if period_us is not None and process in (None, str(os.getpid())):
            if period_us.isascii() and period_us.isdigit() and int(period_us) > 0:
                watchdog_s = int(period_us) / 1e6
            else:
                told = event("no-watchdog")
                log.warning("$%s is %r, no number of microseconds: no watchdog", WATCHDOG_PERIOD, period_us, extra=told)
        try:
            return cls(address, watchdog_s)
        except ValueError as error:
            told = event("service-manager-lost")
            log.warning("$%s: %s: the service manager is told nothing", ADDRESS, error, extra=told)
            return cls()

    def ready(self, status: str | None = None) -> None:
        """The daemon serves: after its start, and after a reload."""
        self._tell("READY=1", status=status)

    def status(self, text: str) -> None:
        """Say in one line how the daemon fares, for `systemctl status`."""
        self._tell(status=text)

    def progress(self, words: str, patience_s: float) -> None:
        """Say how far the start or reload is, which may take so much longer from now (systemd 236)."""
        self._tell(f"EXTEND_TIMEOUT_USEC={round(patience_s * 1e6)}", status=words)

    def reloading(self, status: str | None = None) -> None:
        """A reload begins; `ready` says that it is over. The clock's time is for Type=notify-reload (systemd 253)."""
        self._tell("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}", status=status)

    def stopping(self, within_s: float, status: str | None = None) -> None:
        """The daemon stops, which may take so long. Nothing but this is said from now on.

        A feeding would arm the watchdog anew, which the service manager has ended with this.
        """
        with self._lock:
            self._is_stopping = True
            self._send(("STOPPING=1", f"EXTEND_TIMEOUT_USEC={round(within_s * 1e6)}"), status)

    def watchdog(self) -> bool:
        """Say that the daemon works, without waiting for room in the queue; return whether that was taken."""
        if self._is_stopping or not self._lock.acquire(blocking=False):
            return False  # somebody waits for room
        try:
            return not self._is_stopping and self._send(("WATCHDOG=1",), flags=socket.MSG_DONTWAIT)
        finally:
            self._lock.release()

    def close(self) -> None:
        """Say no more."""
        with self._lock:
            if self._socket is not None:
                self._socket.close()
            self._socket = None

    def _tell(self, *lines: str, status: str | None = None) -> None:
        with self._lock:
            if not self._is_stopping:
                self._send(lines, status)

    def _send(self, lines: tuple[str, ...], status: str | None = None, flags: int = 0) -> bool:
        """Return whether it was taken. The caller holds the lock."""
        if self._socket is None or self._address is None:
            return False
        if status is not None:
            lines = (*lines, "STATUS=" + "".join(c if c.isprintable() else " " for c in status)[:LONGEST_STATUS])
        try:
            self._socket.sendto("\n".join(lines).encode(), socket.MSG_NOSIGNAL | flags, self._address)
        except OSError as error:
            if not self._has_failed:
                told = event("service-manager-lost")
                why = error.strerror or error  # a path that is too long has no number, and no words of its own
                log.warning("the service manager cannot be told (%s): %s", lines[0], why, extra=told)
            self._has_failed = True
            return False
        self._has_failed = False
        return True
