"""What `jetsel models build` prints: which model is being built, and what became of each model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from jetsel.cli.models.building import Outcome


class BuildProgress:
    """A line for each model, with its seconds on a terminal; what became of each on the standard output."""

    def __init__(self, about: Mapping[str, Any], source: str, count: int, *, quiet: bool) -> None:
        from rich.console import Console
        from rich.progress import Progress, TextColumn, TimeElapsedColumn

        from jetsel.engines.building.trial import ENOUGH

        self._quiet = quiet
        self._console = Console(stderr=True, highlight=False, quiet=quiet)
        columns = TextColumn("{task.description}", markup=False), TimeElapsedColumn()
        is_shown = self._console.is_terminal and not quiet
        self._clock = Progress(*columns, console=self._console, disable=not is_shown, transient=True)
        self._task = self._clock.add_task("")
        self._print(f"TensorRT {about['version']} on {about['gpu']['name']}; comparing on {source}")
        if count < ENOUGH:
            self._print(f"fewer than {ENOUGH} photographs show only whether an engine is broken: see --photographs DIR")

    def __enter__(self) -> BuildProgress:
        self._clock.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._clock.stop()

    def begin(self, number: int, missing: int, name: str) -> None:
        """Begin the next model."""
        self._clock.reset(self._task, description=name)
        self._print(f"building {number} of {missing}: {name}")

    def wait(self) -> None:
        """Say that another build has to end first."""
        self._print("waiting for another build")

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
