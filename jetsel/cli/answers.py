"""Answers as they are printed: one JSON object, one row of a table, or all there is to say about one photograph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
from rich.markup import escape
from rich.table import Table

from jetsel.cli.terminal import milliseconds, table
from jetsel.errors import JetselError
from jetsel.wire import Answer, Ran


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one image; `latency_ms` is the client's own wall time for it, reading the file included."""

    path: str
    latency_ms: float
    result: Answer | JetselError | OSError


def as_plain(outcome: Outcome, explain: bool) -> dict[str, Any]:
    """Return the outcome as the object that --json prints on its own line."""
    answer = outcome.result
    if isinstance(answer, JetselError):
        error = {"code": answer.code, "message": str(answer), "retry": answer.retry}
        return {"path": outcome.path, "error": error}
    if isinstance(answer, OSError):
        error = {"code": "unreadable", "message": reason(answer), "retry": False}
        return {"path": outcome.path, "error": error}
    names = ("label", "wnid", "probability", "top_k", "model", "policy", "ran")
    plain = {"path": outcome.path} | {name: msgspec.to_builtins(getattr(answer, name)) for name in names}
    plain |= {
        "latency_ms": round(outcome.latency_ms, 3),
        "stages_ms": msgspec.to_builtins(answer.stages_ms),
        "energy_mj": answer.energy_mj,
        "energy_reason": answer.energy_reason,
        "energy_estimated": answer.energy_estimated,
        "out_of_conditions": answer.out_of_conditions,
    }
    return plain | ({"explanation": msgspec.to_builtins(answer.explanation)} if explain else {})


def reason(error: JetselError | OSError) -> str:
    """Return why there is no answer, on one line."""
    return " ".join(str((error.strerror if isinstance(error, OSError) else None) or error).split())


def answers_table() -> Table:
    """Return the table that `add_row` fills."""
    return table("image", "answer", ">prob.", "answered by", "models run", ">ms", ">mJ")


def add_row(shown: Table, outcome: Outcome) -> None:
    """Add one image's row; a failed one says why where the answer would stand."""
    answer = outcome.result
    path = escape(outcome.path)
    if not isinstance(answer, Answer):
        shown.add_row(path, f"[red]{escape(reason(answer))}[/red]", "-", "-", "-", "-", "-")
        return
    label = escape(short(answer.label)) + (" (in doubt)" if answer.in_doubt else "")
    energy = "-" if answer.energy_mj is None else f"{'~' * answer.energy_estimated}{answer.energy_mj:.1f}"
    ran = ", ".join(run.model for run in answer.ran)
    took = milliseconds(outcome.latency_ms)
    shown.add_row(path, label, f"{answer.probability:.0%}", escape(answer.model), escape(ran), took, energy)


def without_energy(outcome: Outcome) -> str | None:
    """Return why the row has a dash for its energy, to be said once below the table; None where it has none."""
    answer = outcome.result
    return f"energy not known: {answer.energy_reason}" if isinstance(answer, Answer) and answer.energy_reason else None


def details(outcome: Outcome) -> list[str]:
    """Return all that is to be said about one answered photograph."""
    answer = outcome.result
    assert isinstance(answer, Answer)
    stages = answer.stages_ms
    spent = {"queue": stages.queue, "decode": stages.decode, "features": stages.features, "choice": stages.choice}
    spent["waiting for models"] = stages.waiting
    spent |= {f"{run.model}": took for run, took in zip(answer.ran, stages.inference, strict=False)}
    doubt = ", in doubt" * answer.in_doubt + ", cut short" * answer.cut_short
    lines = [f"{outcome.path} ({answer.width_px} x {answer.height_px})"]
    lines += [f"  {ranked.probability:6.1%}  {short(ranked.label)} ({ranked.wnid})" for ranked in answer.top_k]
    lines.append(f"  answered by {answer.model}, policy {answer.policy}{doubt}: {answer.because}")
    lines += [f"  ran {_run(run)}" for run in answer.ran]
    times = ", ".join(f"{name} {milliseconds(value)}" for name, value in spent.items() if value is not None)
    lines.append(f"  {milliseconds(outcome.latency_ms)} ms here, {milliseconds(stages.total)} in the daemon: {times}")
    lines.append(f"  energy: {_energy(answer)}")
    lines += [f"  out of its conditions: {reason}" for reason in answer.out_of_conditions]
    return lines + _explained(answer)


def _energy(answer: Answer) -> str:
    """The energy in words."""
    if answer.energy_mj is None:
        return f"not known ({answer.energy_reason})"
    return f"{answer.energy_mj:.1f} mJ (estimated: the calibration's mean of what ran)"


def _run(run: Ran) -> str:
    batch = f" in a batch of {run.batch}" if run.batch > 1 else ""
    return f"{run.model}: {run.because}; confidence {run.confidence:.1%}, {milliseconds(run.latency_ms)} ms{batch}"


def _explained(answer: Answer) -> list[str]:
    told = answer.explanation
    if told is None:
        return []
    lines = [] if told.policy_because is None else [f"  the policy: {told.policy_because}"]
    if told.objective is not None:
        lines.append(f"  the calibration is to save {told.objective}")
    if told.budget is not None:
        lines.append(f"  the power budget: {told.budget.budget_w:g} W, level {told.budget.level}: {told.budget.state}")
    lines.append(f"  decoded at {told.decoded_width_px} x {told.decoded_height_px}")
    lines += [f"  step: {step}" for step in told.steps]
    if told.distance is not None:
        lines.append(f"  distance to the nearest photographs of the calibration: {told.distance:.3f}")
    if told.features is not None:
        lines.append("  features: " + ", ".join(f"{name} {value:.4g}" for name, value in told.features.items()))
    return lines


def short(label: str) -> str:
    """Return the first of a label's synonyms: 'orange, orange tree' -> 'orange'."""
    return label.split(",")[0]
