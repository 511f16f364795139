"""Progress and outcome of `jetsel calibrate`: a bar and sentences for people, or lines of JSON for programs."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.progress import TaskID

    from jetsel.calibrate.calibrating import Calibrated
    from jetsel.calibrate.record import Progress, Recorded
    from jetsel.policies.installed import Installed

PHASES = {
    "reading": "reading the files",
    "recording": "recording",
    "timing": "timing the models",
    "metering": "metering the models",
}


class Output:
    """A bar on standard error, or JSON lines on standard output; quiet: neither. A context manager."""

    def __init__(self, *, as_json: bool, quiet: bool = False) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        self._as_json = as_json
        self._console = Console(stderr=True, highlight=False, quiet=quiet)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._bars = Bars(*columns, console=self._console, disable=as_json)
        self._tasks: dict[str, TaskID] = {}
        self._began_s = time.monotonic()

    def __enter__(self) -> Output:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._complete()
        if self._tasks:  # stopping what was never started would print an empty line
            self._bars.stop()

    @contextmanager
    def interruptible(self) -> Iterator[threading.Event]:
        """Give an event that Ctrl-C sets, so that what was recorded is written before the command ends."""
        stop = threading.Event()
        before = signal.signal(signal.SIGINT, lambda *_: stop.set())
        try:
            yield stop
        finally:
            signal.signal(signal.SIGINT, before)

    def recording(self, progress: Progress) -> None:
        """Show where the recording stands."""
        self._step(progress.phase, progress.done, progress.total)

    def fitting(self, what: str, done: int, total: int) -> None:
        """Show where fitting and comparing stand."""
        self._step(what, done, total)

    def recorded(self, path: Path, done: Recorded) -> None:
        """Say what recording came to."""
        left_out = "".join(f"; left out: {count} {reason}" for reason, count in done.skipped.items())
        notes = [] if done.noisy is None else [f"the times are noisy: {done.noisy}"]
        notes += [] if done.unmetered is None else [f"energy was not measured: {done.unmetered}"]
        values = {"photographs": done.photographs, "skipped": dict(done.skipped), "noisy": done.noisy}
        lines = [f"{done.photographs} photographs in {path}{left_out}", *notes]
        self._say(lines, phase="recorded", file=str(path), **values, unmetered=done.unmetered)

    def finished(self, found: Calibrated, report: Path | None, entry: Installed | None, daemon: str | None) -> None:
        """Print the outcome. report: where the page was written, None where its libraries are not installed."""
        findings = found.findings
        if self._as_json:
            names = ("winner", "rival", "verdict", "labels_from")
            values = {"installed": None if entry is None else entry.number, "daemon": daemon}
            values |= {name: getattr(findings, name) for name in names}
            seconds = round(time.monotonic() - self._began_s, 1)
            self._say([], phase="finished", **values, report=report and str(report), seconds=seconds)
            return
        from jetsel.calibrate.report import NO_PAGE
        from jetsel.cli.comparison import in_words, results_table
        from jetsel.cli.terminal import console

        out = console()
        for comparison in findings.comparisons.values():
            out.print(results_table(comparison.criterion, (comparison.policies | comparison.bounds).values()))
        done = "nothing was installed: what is in use stays (--force overrides)"
        if entry is not None:
            done = f"installed as number {entry.number}; back with: jetsel calibration rollback"
        lines = [*in_words(findings), f"\n{findings.verdict}", done, *([] if daemon is None else [daemon])]
        for line in (*lines, NO_PAGE if report is None else f"the report: {report}"):
            out.print(line, markup=False, soft_wrap=True)

    def _step(self, what: str, done: int, total: int) -> None:
        if self._as_json:
            self._say([], phase=what, done=done, total=total)
            return
        if not self._tasks:
            self._bars.start()
        if what not in self._tasks:
            self._complete()
            self._tasks[what] = self._bars.add_task(PHASES.get(what, what), total=total)
        self._bars.update(self._tasks[what], completed=done, total=total)

    def _complete(self) -> None:
        """Fill the bars so far: one thing is done after the other."""
        for task in self._bars.tasks:
            self._bars.update(task.id, completed=task.total)

    def _say(self, lines: list[str], **values: Any) -> None:
        if self._as_json:
            typer.echo(json.dumps(values))
        else:
            self._console.print("\n".join(lines), markup=False, soft_wrap=True)
