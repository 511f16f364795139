"""How `jetsel calibrate` tells of its progress and its outcome: to people, or line by line to programs."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from jetsel.calibrate.calibrating import Calibrated
    from jetsel.calibrate.record import Progress, Recorded
    from jetsel.policies.installed import Installed

PHASES = {
    "reading": "reading the files",
    "recording": "recording",
    "timing": "timing the models",
    "metering": "metering the models",
}


class Teller:
    """A bar on the terminal, or JSON lines on the standard output. A context manager; quiet: neither."""

    def __init__(self, *, as_json: bool, quiet: bool = False) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        self._as_json = as_json
        self._console = Console(stderr=True, highlight=False, quiet=quiet)
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=self._console,
            disable=as_json,
        )
        self._tasks: dict[str, Any] = {}
        self._began_s = time.monotonic()

    def __enter__(self) -> Teller:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
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
        """Tell where the recording stands."""
        if self._as_json:
            per_s, left = progress.rate_per_s, progress.seconds_left
            self._line(
                phase=progress.phase, done=progress.done, total=progress.total, rate_per_s=per_s, seconds_left=left
            )
            return
        rate = "" if progress.rate_per_s is None else f"{progress.rate_per_s:.0f}/s"
        self._bar(PHASES[progress.phase], progress.done, progress.total, rate)

    def fitting(self, what: str, done: int, total: int) -> None:
        """Tell where fitting and comparing stand."""
        if self._as_json:
            self._line(phase=what, done=done, total=total, rate_per_s=None, seconds_left=None)
        else:
            self._bar(what, done, total, "")

    def recorded(self, path: Path, done: Recorded) -> None:
        """Tell what recording came to."""
        if self._as_json:
            skipped = dict(done.skipped)
            self._line(
                phase="recorded",
                file=str(path),
                photographs=done.photographs,
                skipped=skipped,
                noisy=done.noisy,
                unmetered=done.unmetered,
            )
            return
        left_out = "".join(f"; left out: {count} {reason}" for reason, count in done.skipped.items())
        self._console.print(f"{done.photographs} photographs in {path}{left_out}", markup=False)
        if done.noisy is not None:
            self._console.print(f"the times are noisy: {done.noisy}", markup=False, style="yellow")
        if done.unmetered is not None:
            self._console.print(f"energy was not measured: {done.unmetered}", markup=False)

    def unchanged(self, path: Path) -> None:
        """Tell that there is nothing to do; path: of the recording."""
        if self._as_json:
            self._line(phase="unchanged", file=str(path))
        else:
            self._console.print("photographs, models and options are those of the last time: nothing to do")

    def finished(self, found: Calibrated, report: Path | None, entry: Installed | None, daemon: str | None) -> None:
        """Tell the outcome. report: where the page was written, None where its libraries are not installed."""
        findings = found.findings
        if self._as_json:
            self._line(
                phase="finished",
                installed=None if entry is None else entry.number,
                winner=findings.winner,
                rival=findings.rival,
                verdict=findings.verdict,
                labels_from=findings.labels_from,
                daemon=daemon,
                report=None if report is None else str(report),
                seconds=round(time.monotonic() - self._began_s, 1),
            )
            return
        from jetsel.calibrate.report import NO_PAGE
        from jetsel.cli.comparison import comparison_table, in_words
        from jetsel.cli.terminal import console

        out = console()
        for comparison in findings.comparisons.values():
            out.print(comparison_table(comparison))
        for sentence in in_words(findings):
            out.print(sentence, markup=False)
        out.print(f"\n{findings.verdict}", markup=False)
        if entry is None:
            out.print("nothing was installed: what is in use stays (--force overrides)", markup=False)
        else:
            out.print(f"installed as number {entry.number}; back with: jetsel calibration rollback", markup=False)
        if daemon is not None:
            out.print(daemon, markup=False)
        out.print(NO_PAGE if report is None else f"the report: {report}", markup=False)

    def _bar(self, what: str, done: int, total: int, rate: str) -> None:
        if not self._tasks:
            self._bars.start()
        if what not in self._tasks:
            self._complete()
            self._tasks[what] = self._bars.add_task(what, total=total, rate=rate)
        self._bars.update(self._tasks[what], completed=done, total=total, rate=rate)

    def _complete(self) -> None:
        """Fill the bars so far: one thing is done after the other."""
        for task in self._bars.tasks:
            self._bars.update(task.id, completed=task.total)

    def _line(self, **values: Any) -> None:
        typer.echo(json.dumps(values))
