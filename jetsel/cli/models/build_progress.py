"""What `jetsel models build` prints: the progress of each build, and what became of each model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from jetsel.daemon.building import Outcome


class BuildProgress:
    """A bar on a terminal, a line for each stage elsewhere; what became of each model on the standard output."""

    def __init__(self, about: Mapping[str, Any], source: str, count: int, *, quiet: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        from jetsel.engines.building.trial import ENOUGH

        self._quiet = quiet
        self._console = Console(stderr=True, highlight=False, quiet=quiet)
        columns = TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn()
        is_bar = self._console.is_terminal and not quiet
        self._bars = Progress(*columns, console=self._console, disable=not is_bar, transient=True)
        self._task = self._bars.add_task("")
        self._name, self._stage = "", ""
        self._print(f"TensorRT {about['version']} on {about['gpu']['name']}; comparing on {source}")
        if count < ENOUGH:
            self._print(f"fewer than {ENOUGH} photographs show only whether an engine is broken: see --photographs DIR")

    def __enter__(self) -> BuildProgress:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def begin(self, number: int, missing: int, name: str) -> None:
        """Begin the next model."""
        self._name = name
        self._print(f"building {number} of {missing}: {name}")

    def stage(self, stage: str, share: float | None) -> None:
        """Show how far the model is."""
        total = None if share is None else 1.0
        self._bars.update(self._task, description=f"{self._name}: {stage[:60]}", total=total, completed=share or 0.0)
        kind = stage.partition(":")[0]
        if self._bars.disable and kind != self._stage:
            self._stage = kind
            self._print(f"{self._name}: {kind}")

    def end(self, outcome: Outcome) -> None:
        """Print what became of a model."""
        if not self._quiet:
            typer.echo(f"{outcome.candidate.family} {outcome.candidate.name}: {_result(outcome)}")

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, soft_wrap=True)


def _result(outcome: Outcome) -> str:
    from jetsel.cli.terminal import milliseconds

    if outcome.plan is None:
        return f"not built: {' '.join(str(outcome.reason).split()).removeprefix(f'{outcome.candidate.name}: ')}"
    record, check = outcome.plan.record, outcome.plan.record.check
    began = f"built in {record.build_s:.1f} s" if outcome.was_built else f"stands, built {record.built}"
    device = "" if check.device_ms is None else f", {milliseconds(check.device_ms)} ms on the device"
    figures = (
        f"{record.key.precision}, {record.plan_bytes / 1e6:.1f} MB; top-1 agreement with ONNX Runtime "
        f"{check.agreement:.1%} on {check.source}, largest logit difference {check.largest_difference:.2g} of a "
        f"spread of {check.spread:.3g}{device}"
    )
    return "; ".join([f"{began}, {figures}", *record.notes])
