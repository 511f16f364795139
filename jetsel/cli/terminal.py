"""Tables, numbers, progress and the summary of a report for a terminal."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from rich.progress import TaskID

    from jetsel.calibrate.install import RecordingJob
    from jetsel.calibrate.judge.findings import Findings, PromiseCheck
    from jetsel.calibrate.record.recording import LoadedRecording
    from jetsel.calibrate.record.workers import RecordingPlan
    from jetsel.calibrate.report import Listing

WIDTH_IN_A_FILE = 100_000  # columns, so that lines with long paths stay whole in a pipe


def console() -> Console:
    """Return a console for standard output that prints texts as they are, and does not wrap lines in a file or pipe."""
    out = Console(highlight=False, emoji=False, markup=False)
    return out if out.is_terminal else Console(highlight=False, emoji=False, markup=False, width=WIDTH_IN_A_FILE)


def table(*columns: str) -> Table:
    """Return an empty table; a column whose name begins with > is aligned to the right."""
    rows = Table(box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        if column.startswith(">"):
            rows.add_column(column[1:], justify="right", no_wrap=True)
        else:
            rows.add_column(column, overflow="fold")
    return rows


def milliseconds(value: float | None) -> str:
    """Return a time with three significant digits, or a dash if it is unknown."""
    return (
        "-" if value is None else f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    )


PHASES = {
    "reading": "reading the files",
    "comparing": "comparing ways of preparing the images",
    "recording": "recording",
    "timing": "timing the models",
    "metering": "measuring the energy of the models",
}

LINE_EVERY_S = 10.0  # between lines of progress if the output is no terminal


class _PrintedStep(NamedTuple):
    """The last printed progress. from_done: number of steps that were done when its phase began."""

    phase: str
    began_s: float
    printed_s: float
    from_done: int


def _duration(seconds: float) -> str:
    return f"{max(1, round(seconds))} s" if seconds < 90 else f"{round(seconds / 60)} minutes"


class ProgressOutput:
    """Shows a command's progress on standard error, as bars on a terminal or else as lines. quiet: print nothing."""

    def __init__(self, *, quiet: bool) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._console = Console(stderr=True, highlight=False, markup=False, quiet=quiet)
        name = TextColumn("{task.description}", markup=False)
        columns = (name, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._bars = Progress(*columns, console=self._console, disable=quiet)
        self._tasks: dict[str, TaskID] = {}  # the bars by phase
        self._stopped = "stopped"  # what is printed after Ctrl-C
        self._line = _PrintedStep("", 0.0, 0.0, 0)

    def __enter__(self) -> ProgressOutput:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._complete()
        if kind is KeyboardInterrupt and self._bars.tasks:
            last = self._bars.tasks[-1]
            self._stopped = f"stopped: {last.description}, {last.completed:,.0f} of {last.total:,.0f}"
        if self._tasks:  # stopping bars that never started would print an empty line
            self._bars.stop()
        if kind is KeyboardInterrupt:
            self._console.print(f"{self._stopped}; run the same command again to continue")

    @contextmanager
    def interruptible(self) -> Iterator[threading.Event]:
        """Yield an event that Ctrl-C sets, so that recorded results are written before the command ends."""
        stop = threading.Event()
        old_handler = signal.signal(signal.SIGINT, lambda *_: stop.set())
        try:
            yield stop
        finally:
            signal.signal(signal.SIGINT, old_handler)

    def print_recording(self, job: RecordingJob, loaded: LoadedRecording) -> None:
        """Print a summary of the recording, with warnings."""
        from jetsel.calibrate.listing import left_out_lines
        from jetsel.calibrate.record.classes import remarks

        times, count = loaded.times, len(loaded.recording.classes)
        lines = [f"{count} images in {job.path}", *left_out_lines(loaded.left_out)]
        lines += [] if times.noisy is None else [f"the times are noisy: {times.noisy}"]
        lines += [f"{model} was recorded no further: {reason}" for model, reason in loaded.dropped.items()]
        lines += [f"warning: {doubt}" for doubt in loaded.doubts.values()]
        lines += [] if times.energy_reason is None else [f"energy is not known: {times.energy_reason}"]
        if loaded.learned:
            learned = f"the models learned from {loaded.learned_share} of these images"
            lines.append(f"warning: {learned}; use images that they have not seen")
        lines += [] if loaded.labels_from is not None else [f"note: {line}" for line in remarks(loaded, job.family)]
        self._console.print("\n".join(lines), soft_wrap=True)

    def print_plan(self, plan: RecordingPlan) -> None:
        """Print the size of the recording to make, and about how long it takes."""
        size = f"{plan.images} images, {plan.models} models"
        self._console.print(f"{size}: about {_duration(plan.estimated_s)}; Ctrl-C stops, nothing is lost")

    def step(self, what: str, done: int, total: int) -> None:
        """Show that `done` of `total` steps of a phase are complete. what: the phase, a key of PHASES or a text."""
        if not self._console.is_terminal:
            self._print_step(PHASES.get(what, what), done, total)
            return
        if not self._tasks:
            self._bars.start()
        if what not in self._tasks:
            self._complete()
            self._tasks[what] = self._bars.add_task(PHASES.get(what, what), total=total)
        self._bars.update(self._tasks[what], completed=done, total=total)

    def _print_step(self, phase: str, done: int, total: int) -> None:
        """Print a line when a phase begins, and then every LINE_EVERY_S."""
        now_s = time.monotonic()
        if phase != self._line.phase:
            self._line = _PrintedStep(phase, now_s, now_s, done)
            self._console.print(phase)
        elif now_s - self._line.printed_s >= LINE_EVERY_S and done:
            left_s = (now_s - self._line.began_s) / max(1, done - self._line.from_done) * (total - done)
            self._line = self._line._replace(printed_s=now_s)
            self._console.print(f"{phase}: {done} of {total}, about {_duration(left_s)} left")

    def _complete(self) -> None:
        """Fill all bars: phases follow each other, so earlier ones are complete."""
        for task in self._bars.tasks:
            self._bars.update(task.id, completed=task.total)


MOST_ROWS = 11  # of a calibration's table, which then takes 15 lines with title, heads and note


def outcome_table(findings: Findings) -> list[Table | str]:
    """Return the policies' results as a caption, a table, and a note if the table leaves out single models."""
    from jetsel.calibrate.report.overview import compared_results, overview, statuses, without_dominated

    results, marks = compared_results(findings), statuses(findings)
    best_single = findings.comparison.best_single
    listed = without_dominated(results, MOST_ROWS, [*marks, f"single:{best_single}"])
    left = len(results) - len(listed)
    note = [f"not shown: {left} single models; they are in the report and in --json"] if left else []
    return [*listing_lines(overview(listed, best_single, findings.calibration.images.labels_from, marks)), *note]


def listing_lines(listing: Listing) -> list[Table | str]:
    """Return the caption and the table of a report's listing; a marked row has its mark behind its name."""
    name_column, *number_columns = listing.columns
    rows = table(name_column, *(f">{column}" for column in number_columns))
    rows.show_edge = False
    for name, *cells in listing.rows:
        mark = listing.marks.get(name)
        rows.add_row(f"{name} ({mark})" if mark else name, *cells)
    return [listing.caption, rows]


def result_sentences(findings: Findings) -> list[str]:
    """Return sentences about the gain by choosing models from image features, promised error rates, and odd labels."""
    from jetsel.calibrate.judge.words import premodel_in_words, promises_in_words

    chain, doubtful = findings.comparison.chain, findings.doubtful
    lines = [] if chain is None else [premodel_in_words(chain)]
    if findings.promises is not None:
        lines.append(promises_in_words(findings.winner, findings.promises))
    if doubtful is not None and (doubtful.contradicted.total or doubtful.near.total or doubtful.far.total):
        lines.append(
            f"Labels to look at again: {doubtful.contradicted.total} images that the models contradict, "
            f"{doubtful.near.total} nearly the same as one of another class, {doubtful.far.total} far from their "
            "class; the report shows the first."
        )
    return lines


def promises_table(checks: Sequence[PromiseCheck]) -> Table:
    """Return a table with a row for each promise (a maximum error rate), and whether new images kept it."""
    rows = table(">wrong at most %", ">answered %", ">wrong %", ">95 % interval", "promise")
    for check in checks:
        ends = check.wrong_interval
        interval = "-" if ends is None else f"{100 * ends.low:.1f} to {100 * ends.high:.1f}"
        wrong = "-" if check.wrong is None else f"{100 * check.wrong:.1f}"
        verdict = {True: "kept", False: "broken", None: "too few images to tell"}[check.is_kept]
        rows.add_row(f"{100 * check.wrong_at_most:g}", f"{100 * check.answered:.1f}", wrong, interval, verdict)
    return rows
