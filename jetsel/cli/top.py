"""`jetsel top`: the status of a running daemon, live in a terminal, or one block of text after another."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from jetsel.base.errors import JetselError
from jetsel.cli.options import DaemonConfig, Endpoint
from jetsel.site.config_file import endpoint_of

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult

    from jetsel.wire import StatusReply

TIMEOUT_MS = 5000.0  # a daemon under load answers late
REFRESH_HZ = 2  # how soon a window of another size is filled
END = b"\x04"  # what is read if the terminal is gone; Ctrl-D types it
QUIT = b"qQ" + END
SCROLL = {b"\x1b[A": -1, b"k": -1, b"\x1b[B": 1, b"j": 1, b"\x1b[5~": -20, b"\x1b[6~": 20}  # arrows and Page Up, Down


def top(
    interval: Annotated[
        float, typer.Option("--interval", "-i", min=0.1, max=3600, help="Seconds between two updates.")
    ] = 2.0,
    count: Annotated[
        int | None,
        typer.Option("--count", "-n", min=1, help="Updates to show (default: until q or Ctrl-C)."),
    ] = None,
    config: DaemonConfig = None,
    endpoint: Endpoint = None,
) -> None:
    """Watch the daemon: requests per second, where their time goes, the queue, the models and the power.

    In a terminal it fills the screen until q or Ctrl-C; arrows and Page Up or Down scroll. Without a terminal, each
    update is printed as a block of text. If the daemon stops, the command waits for it.
    """
    from jetsel.client import Client

    client = Client(endpoint_of(endpoint, config), timeout_ms=TIMEOUT_MS, retry=False)
    before, now, gone, number = None, client.status(), "", 1
    with contextlib.suppress(KeyboardInterrupt), _screen() as (show, is_over):
        seen_at = datetime.now()
        while True:
            show(page(before, now, f"{seen_at:%H:%M:%S}, every {interval:g} s", gone))
            if number == count or is_over(interval):
                return
            number += 1
            try:
                before, now, gone, seen_at = now, client.status(), "", datetime.now()
            except JetselError as error:
                gone = str(error)


@contextlib.contextmanager
def _screen() -> Iterator[tuple[Callable[[Group], None], Callable[[float], bool]]]:
    """Give what shows a page, and what waits this number of seconds and returns whether the user has ended it."""
    from rich.live import Live

    from jetsel.cli.terminal import console

    out = console()
    if not out.is_terminal or out.is_dumb_terminal or not sys.stdin.isatty():
        yield out.print, threading.Event().wait  # which nobody sets
        return
    for number in (signal.SIGTERM, signal.SIGHUP):  # as an exception, so that the terminal is restored
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    view = View()
    with _single_keys() as key, Live(view, console=out, screen=True, refresh_per_second=REFRESH_HZ) as live:

        def show(shown: RenderableType) -> None:
            view.page = shown
            live.refresh()

        def is_over(seconds: float) -> bool:
            until = time.monotonic() + seconds
            while typed := key(max(until - time.monotonic(), 0.0)):
                if any(letter in typed for letter in QUIT):
                    return True
                lines = sum(step * typed.count(keys) for keys, step in SCROLL.items())
                if not lines:
                    return False
                view.first += lines
                live.refresh()
            return False

        yield show, is_over


class View:
    """As much of a page as the screen holds, and below it where the rest is; `first` is the line at the top."""

    def __init__(self) -> None:
        self.page: RenderableType = ""
        self.first = 0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.segment import Segment, Segments

        lines = console.render_lines(self.page, options.update(height=None), pad=False)
        room = options.max_height
        rest = len(lines) > room
        room -= rest
        self.first = max(0, min(self.first, len(lines) - room))
        last = min(self.first + room, len(lines))
        for line in lines[self.first : last]:
            yield Segments([*line, Segment.line()])
        if rest:
            yield f"lines {self.first + 1} to {last} of {len(lines)}: arrows and Page Up or Down scroll, q quits"


@contextlib.contextmanager
def _single_keys() -> Iterator[Callable[[float], bytes]]:
    """Read keys one by one and unseen, and restore the terminal; empty: none came in these seconds."""
    keyboard = sys.stdin.fileno()

    def key(seconds: float) -> bytes:
        ready, _, _ = select.select([keyboard], [], [], seconds)
        return (os.read(keyboard, 64) or END) if ready else b""

    before = termios.tcgetattr(keyboard)
    try:
        tty.setcbreak(keyboard)
        now = termios.tcgetattr(keyboard)
        now[6][termios.VSUSP] = b"\0"  # _POSIX_VDISABLE: a view stopped by Ctrl-Z would leave its screen behind
        termios.tcsetattr(keyboard, termios.TCSADRAIN, now)
        yield key
    finally:
        with contextlib.suppress(termios.error):  # the terminal itself is gone
            termios.tcsetattr(keyboard, termios.TCSAFLUSH, before)


def page(before: StatusReply | None, now: StatusReply, when: str, gone: str = "") -> Group:
    """Return what is shown: the last reply, and what happened since the one before it.

    when: a note for the first line. gone: why the newest look had no answer, empty if it had.
    """
    from rich.console import Group
    from rich.text import Text

    from jetsel.cli.status_text import details, headline

    if before is not None and before.instance != now.instance:
        before = None  # another daemon: rates since its start
    parts = [Text(f"{headline(now)}; {when}", "bold")]
    parts += [Text(f"the daemon does not reply; this is its last status: {gone}", "bold red")] if gone else []
    now_s, then_s = now.uptime_s, before.uptime_s if before else 0.0
    if now_s is not None and then_s is not None:
        seconds = max(now_s - then_s, 1e-3)
        done = {code: count - (before.requests.get(code, 0) if before else 0) for code, count in now.requests.items()}
        ended = ", ".join(f"{count / seconds:.1f} {code}" for code, count in done.items() if count)
        since = f"over {seconds:.1f} s" if before else "since the start"
        parts.append(Text(f"now: {sum(done.values()) / seconds:.1f} requests/s {since}{': ' * bool(ended)}{ended}"))
    return Group(*parts, *(Text(part) if isinstance(part, str) else part for part in details(now)))
