"""The terminal's keys while a live view has the screen, and the terminal as it was when that ends."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from types import FrameType

from jetsel.bell import Bell

QUIT = b"qQ"
ENDING = (signal.SIGTERM, signal.SIGHUP)


class Keys:
    """Waits for keys, for a bell, and for signals."""

    def __init__(self, bell: Bell, keyboard: int | None = None, signals: int | None = None) -> None:
        """keyboard: a terminal's descriptor; None: there are no keys. signals: where a byte comes with each."""
        self._bell = bell
        self._keyboard = keyboard
        self._signals = signals

    def wants_to_quit(self, limit_s: float) -> bool:
        """Wait until something happens, no longer than the limit; return whether it was the key that ends the view."""
        wanted = [fd for fd in (self._bell.fd, self._keyboard, self._signals) if fd is not None]
        ready, _, _ = select.select(wanted, [], [], limit_s)
        if self._bell.fd in ready:
            self._bell.heard()
        if self._signals is not None and self._signals in ready:
            os.read(self._signals, 64)
        if self._keyboard is None or self._keyboard not in ready:
            return False
        typed = os.read(self._keyboard, 64)
        return not typed or any(key in QUIT for key in typed)


@contextlib.contextmanager
def keys(bell: Bell) -> Iterator[Keys]:
    """Give the terminal's keys one by one and unseen; whatever ends this, the terminal is then as it was before.

    Another size of the window ends a wait. SIGTERM and SIGHUP end the process in order, as SystemExit. Ctrl-Z is off
    meanwhile: a stopped view would leave its screen behind.
    """
    keyboard = sys.stdin.fileno() if sys.stdin.isatty() else None
    with _signals() as signals, contextlib.nullcontext() if keyboard is None else _one_by_one(keyboard):
        yield Keys(bell, keyboard, signals)


@contextlib.contextmanager
def _one_by_one(keyboard: int) -> Iterator[None]:
    was = termios.tcgetattr(keyboard)
    try:
        tty.setcbreak(keyboard)
        now = termios.tcgetattr(keyboard)
        now[6][termios.VSUSP] = b"\0"  # _POSIX_VDISABLE of Linux, see termios(3)
        termios.tcsetattr(keyboard, termios.TCSADRAIN, now)
        yield
    finally:
        with contextlib.suppress(termios.error):  # the terminal itself is gone
            termios.tcsetattr(keyboard, termios.TCSAFLUSH, was)  # keys that were typed meanwhile are no commands


@contextlib.contextmanager
def _signals() -> Iterator[int]:
    """Give a descriptor from which a byte can be read once a signal has come, even if that was before the wait."""
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    before = {number: signal.signal(number, _end) for number in ENDING}
    before[signal.SIGWINCH] = signal.signal(signal.SIGWINCH, _go_on)
    wakes_before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield reading
    finally:
        signal.set_wakeup_fd(wakes_before)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reading)
        os.close(writing)


def _end(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _go_on(_number: int, _frame: FrameType | None) -> None:
    """A signal without a handler wakes nobody."""
