"""How tables, times, energies, progress and the gist of a report look in a terminal."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from rich.progress import TaskID
    from rich.table import Table

    from jetsel.calibrate.install import Job
    from jetsel.calibrate.judge.findings import Findings, PromiseCheck, Result
    from jetsel.calibrate.record import LoadedRecording
    from jetsel.calibrate.record.recorder import RecordingPlan


WIDTH_IN_A_FILE = 100_000  # columns: what reads a pipe finds each line whole, however long its paths are


def console() -> Console:
    """Return the standard output, which prints brackets as they are; of a fixed width if it is no terminal."""
    out = Console(highlight=False, emoji=False, markup=False)
    return out if out.is_terminal else Console(highlight=False, emoji=False, markup=False, width=WIDTH_IN_A_FILE)


def table(*columns: str) -> Table:
    """Return an empty table; a column whose name begins with > is aligned to the right."""
    made = Table(box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        if column.startswith(">"):
            made.add_column(column[1:], justify="right", no_wrap=True)
        else:
            made.add_column(column, overflow="fold")
    return made


def milliseconds(value: float | None) -> str:
    """Return a time with three digits that mean something, or a dash if it is not known."""
    return (
        "-" if value is None else f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    )


PHASES = {
    "reading": "reading the files",
    "recording": "recording",
    "timing": "timing the models",
    "metering": "measuring the energy of the models",
}


LINE_EVERY_S = 10.0  # if the output is no terminal


class _Line(NamedTuple):
    """The last line of progress. from_done: how many steps were done when the thing began."""

    what: str
    began_s: float
    printed_s: float
    from_done: int


def _duration(seconds: float) -> str:
    return f"{max(1, round(seconds))} s" if seconds < 90 else f"{round(seconds / 60)} minutes"


class Output:
    """A bar, or lines, and words on standard error; quiet: none. A context manager."""

    def __init__(self, *, quiet: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        self._console = Console(stderr=True, highlight=False, markup=False, quiet=quiet)
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        self._bars = Bars(*columns, console=self._console, disable=quiet)
        self._tasks: dict[str, TaskID] = {}
        self._stopped = "stopped"
        self._line = _Line("", 0.0, 0.0, 0)

    def __enter__(self) -> Output:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._complete()
        if kind is KeyboardInterrupt and self._bars.tasks:
            last = self._bars.tasks[-1]
            self._stopped = f"stopped: {last.description}, {last.completed:,.0f} of {last.total:,.0f}"
        if self._tasks:  # stopping what was never started would print an empty line
            self._bars.stop()
        if kind is KeyboardInterrupt:
            self._console.print(f"{self._stopped}; run the same command again to continue")

    @contextmanager
    def interruptible(self) -> Iterator[threading.Event]:
        """Give an event that Ctrl-C sets, so that what was recorded is written before the command ends."""
        stop = threading.Event()
        before = signal.signal(signal.SIGINT, lambda *_: stop.set())
        try:
            yield stop
        finally:
            signal.signal(signal.SIGINT, before)

    def recorded(self, job: Job, loaded: LoadedRecording) -> None:
        """Say what recording came to."""
        from jetsel.calibrate.record.classes import remarks
        from jetsel.image.listing import left_out_lines

        times, count = loaded.times, len(loaded.recording.classes)
        lines = [f"{count} images in {job.path}", *left_out_lines(loaded.left_out)]
        lines += [] if times.noisy is None else [f"the times are noisy: {times.noisy}"]
        lines += [f"{model} was recorded no further: {reason}" for model, reason in loaded.dropped.items()]
        lines += [] if times.energy_reason is None else [f"energy is not known: {times.energy_reason}"]
        if loaded.learned:
            learned = f"the models learned from {loaded.learned_share} of these images"
            lines.append(f"warning: {learned}; use images that they have not seen")
        lines += [] if loaded.labels_from is not None else [f"note: {line}" for line in remarks(loaded, job.family)]
        self._console.print("\n".join(lines), soft_wrap=True)

    def plan(self, plan: RecordingPlan) -> None:
        """Say what is to be done, and about how long it takes."""
        takes = _duration(plan.estimated_s)
        self._console.print(f"{plan.images} images, {plan.models} models: about {takes}; Ctrl-C stops, nothing is lost")

    def step(self, what: str, done: int, total: int) -> None:
        """Show how far one thing is: recording, and then fitting and comparing."""
        if not self._console.is_terminal:
            self._print_step(PHASES.get(what, what), done, total)
            return
        if not self._tasks:
            self._bars.start()
        if what not in self._tasks:
            self._complete()
            self._tasks[what] = self._bars.add_task(PHASES.get(what, what), total=total)
        self._bars.update(self._tasks[what], completed=done, total=total)

    def _print_step(self, what: str, done: int, total: int) -> None:
        """Print a line when a thing begins, and each time that ten seconds have passed."""
        now_s = time.monotonic()
        if what != self._line.what:
            self._line = _Line(what, now_s, now_s, done)
            self._console.print(what)
        elif now_s - self._line.printed_s >= LINE_EVERY_S and done:
            left_s = (now_s - self._line.began_s) / max(1, done - self._line.from_done) * (total - done)
            self._line = self._line._replace(printed_s=now_s)
            self._console.print(f"{what}: {done} of {total}, about {_duration(left_s)} left")

    def _complete(self) -> None:
        """Fill the bars so far: one thing is done after the other."""
        for task in self._bars.tasks:
            self._bars.update(task.id, completed=task.total)


OF_ENERGY = (">mean mJ", ">mJ / best single")  # the columns that stand if energy is known


def in_words(findings: Findings) -> list[str]:
    """Return what was found and what is promised."""
    from jetsel.calibrate.judge.words import promises_in_words

    comparison = findings.comparison
    said = list(comparison.sentences)
    if findings.promises is not None:
        said.append(promises_in_words(*next(iter(findings.promises.by_policy.items()))))
    found = findings.doubtful
    if found is not None and (found.contradicted.total or found.near.total or found.far.total):
        said.append(
            f"Labels to look at again: {found.contradicted.total} images that the models contradict, "
            f"{found.near.total} nearly the same as one of another class, {found.far.total} far from their class; the "
            "report shows the first."
        )
    return said


def promises_table(checks: Sequence[PromiseCheck]) -> Table:
    """Return a row for each promise of one policy on other images."""
    shown = table(">wrong at most %", ">answered %", ">wrong %", ">95 % interval", "promise")
    for one in checks:
        ends = one.wrong_interval
        interval = "-" if ends is None else f"{100 * ends.low:.1f} to {100 * ends.high:.1f}"
        wrong = "-" if one.wrong is None else f"{100 * one.wrong:.1f}"
        verdict = {True: "kept", False: "broken", None: "too few images to tell"}[one.is_kept]
        shown.add_row(f"{100 * one.wrong_at_most:g}", f"{100 * one.answered:.1f}", wrong, interval, verdict)
    return shown


def results_table(results: Iterable[Result], default: str | None = None) -> Table:
    """Return a row for each: accuracy, time, energy if it is known, and on how many photographs each model ran.

    'beside a coin': the points over the best mix of two single models in the same mean time.
    """
    found = list(results)
    columns = _columns(default)
    if all(result.energy_mj is None for result in found):
        columns = {name: cell for name, cell in columns.items() if name not in OF_ENERGY}
    if all(result.top5 == 1 for result in found):  # of five classes or fewer
        columns.pop(">top-5 %")
    shown = table(*columns)
    for result in found:
        shown.add_row(*(cell(result) for cell in columns.values()))
    return shown


def _name(result: Result, default: str | None) -> str:
    """The policy, and whether it answers by default, or does no more than one model."""
    is_single = result.name.startswith("single:")
    name = result.name if is_single or result.always is None else f"{result.name} (always {result.always})"
    return f"{name} (default)" if result.name == default else name


def _columns(default: str | None) -> dict[str, Callable[[Result], str]]:
    """A column's name -> a result's cell in it."""
    return {
        "policy": lambda r: _name(r, default),
        ">top-1 %": lambda r: f"{100 * r.top1:.2f} ± {50 * (r.top1_interval.high - r.top1_interval.low):.2f}",
        ">top-5 %": lambda r: f"{100 * r.top5:.2f}",
        ">F1 %": lambda r: f"{100 * r.f1:.1f}",
        ">mean ms": lambda r: milliseconds(r.time_ms.mean),
        ">p95 ms": lambda r: milliseconds(r.time_ms.p95),
        ">ms / best single": lambda r: f"{r.vs_best_single.time_ratio:.2f}",
        ">beside a coin": lambda r: _known(r.points_over_coin, "+.2f", "-"),
        OF_ENERGY[0]: lambda r: _known(r.energy_mj and r.energy_mj.mean, ".3g"),
        OF_ENERGY[1]: lambda r: _known(r.vs_best_single.energy_ratio, ".2f"),
        "runs": lambda r: ", ".join(f"{m} {100 * share:.0f} %" for m, share in r.runs.items() if share >= 0.005),
    }


def _known(value: float | None, form: str, otherwise: str = "unknown") -> str:
    return otherwise if value is None else format(value, form)
