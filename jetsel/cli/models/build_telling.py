"""How `jetsel models build` tells of its progress, and what became of each model."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from jetsel.daemon.building import Outcome
    from jetsel.engines.building.plans import Plan

SAY_EVERY_S = 10.0


class Teller:
    """A bar on a terminal, now and then a line elsewhere; what became of each model on the standard output."""

    def __init__(self, about: Mapping[str, Any], *, quiet: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

        self._quiet = quiet
        self._about = about
        self._console = Console(stderr=True, highlight=False, quiet=quiet)
        self._is_bar = self._console.is_terminal and not quiet
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._is_bar,
            transient=True,
        )
        self._task: TaskID | None = None
        self._name, self._kind, self._next = "", "", 0.0

    def __enter__(self) -> Teller:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def begin(self, source: str, count: int) -> None:
        """Say what is built for, and what is compared on."""
        from jetsel.engines.building.trial import ENOUGH

        about = self._about
        self._say(f"TensorRT {about['version']} on {about['gpu']['name']}; comparing on {source}")
        if count < ENOUGH:
            self._say(
                f"{count} pictures tell whether an engine is broken, not how often it agrees: for that name {ENOUGH} "
                "of your own or more with --photographs DIR"
            )

    def building(self, number: int, missing: int, name: str) -> None:
        """Begin the next model."""
        self._name, self._kind = name, ""
        self._began_s = time.monotonic()
        self._say(f"building {number} of {missing}: {name}")
        if self._task is not None:
            self._bars.remove_task(self._task)
        self._task = self._bars.add_task(name, total=None)

    def stage(self, stage: str, share: float | None) -> None:
        """Tell how far the model is."""
        if self._task is not None:
            whole = None if share is None else 1.0
            self._bars.update(
                self._task, description=f"{self._name}: {stage[:60]}", total=whole, completed=share or 0.0
            )
        kind = stage.partition(":")[0]
        if not self._is_bar and (kind != self._kind or time.monotonic() >= self._next):
            self._kind, self._next = kind, time.monotonic() + SAY_EVERY_S
            how_far = "" if share is None else f" ({share:.0%})"
            self._say(f"{self._name}: {stage}{how_far}, {time.monotonic() - self._began_s:.0f} s")

    def became(self, outcome: Outcome) -> None:
        """Say what became of a model."""
        if self._task is not None:
            self._bars.remove_task(self._task)
            self._task = None
        if not self._quiet:
            name = f"{outcome.candidate.family} {outcome.candidate.model.manifest.name}"
            typer.echo(f"{name}: {_result(outcome)}")

    def _say(self, line: str) -> None:
        self._console.print(line, markup=False, soft_wrap=True)


def _result(outcome: Outcome) -> str:
    if outcome.plan is None:
        reason = " ".join(str(outcome.reason).split())
        return f"not built: {reason.removeprefix(f'{outcome.candidate.model.manifest.name}: ')}"
    record = outcome.plan.record
    began = f"built in {record.build_s:.1f} s" if outcome.was_built else f"stands, built {record.built}"
    return "; ".join([f"{began}, {_figures(outcome.plan)}", *record.notes])


def _figures(plan: Plan) -> str:
    from jetsel.cli.terminal import milliseconds

    record, check = plan.record, plan.record.check
    device = "" if check.device_ms is None else f", {milliseconds(check.device_ms)} ms on the device"
    return (
        f"{record.key.precision}, {record.plan_bytes / 1e6:.1f} MB; top-1 agreement with ONNX Runtime "
        f"{check.agreement:.1%} on {check.source}, largest logit difference {check.largest_difference:.2g} of a "
        f"spread of {check.spread:.3g}{device}"
    )
