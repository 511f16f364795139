"""Print answers: as a JSON object each, as rows of a table, or with all details of one image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from rich.text import Text

from jetsel.base.errors import JetselError
from jetsel.cli.terminal import console, milliseconds, table
from jetsel.wire import Answer, Ran


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer or error for an image, or for one box of it. latency_ms: wall time here, reading the file included."""

    path: str
    latency_ms: float
    result: Answer | JetselError | OSError


def as_plain(outcome: Outcome) -> dict[str, Any]:
    """Return the object that --json prints for an image: its path, and the answer (docs/protocol.md) or the error."""
    result = outcome.result
    if isinstance(result, Answer):
        fields = {"path": outcome.path, "latency_ms": round(outcome.latency_ms, 3)}
        return fields | dict(msgspec.to_builtins(result))
    code, retry = (result.code, result.retry) if isinstance(result, JetselError) else ("unreadable", False)
    return {"path": outcome.path, "error": {"code": code, "message": reason(result), "retry": retry}}


def reason(error: JetselError | OSError) -> str:
    """Return the error's message on one line."""
    return " ".join(str((error.strerror if isinstance(error, OSError) else None) or error).split())


def print_table(outcomes: Sequence[Outcome]) -> None:
    """Print a row for each image, with the answer or the error, and below the table why energies are unknown."""
    rows = table("image", "answer", ">prob.", "answered by", "models run", ">ms of work", ">mJ")
    energy_reasons: dict[str, None] = {}  # each reason once, in order
    for outcome in outcomes:
        answer, path = outcome.result, outcome.path
        if not isinstance(answer, Answer):
            rows.add_row(path, Text(reason(answer), "red"), *["-"] * 5)
            continue
        if answer.energy_reason:
            energy_reasons[answer.energy_reason] = None
        label = answer.label + (" (in doubt)" if answer.in_doubt else "")
        energy = "-" if answer.energy_mj is None else f"{'~' * answer.energy_estimated}{answer.energy_mj:.1f}"
        ran = ", ".join(run.model for run in answer.ran)
        took = milliseconds(_work_ms(answer))
        rows.add_row(path, label, f"{answer.probability:.0%}", answer.model, ran, took, energy)
    out = console()
    out.print(rows)
    for energy_reason in energy_reasons:
        out.print(f"energy not known: {energy_reason}", soft_wrap=True)


def details(outcome: Outcome) -> list[str]:
    """Return lines with all details of an outcome that is an answer."""
    answer = outcome.result
    assert isinstance(answer, Answer)
    stages = answer.stages_ms
    times_ms = {"queue": stages.queue, "decode": stages.decode, "features": stages.features, "choice": stages.choice}
    times_ms |= {"waiting for models": stages.waiting, "model input": stages.input}
    times_ms |= {f"{run.model}": took for run, took in zip(answer.ran, stages.inference, strict=False)}
    doubt = ", in doubt" * answer.in_doubt + ", cut short" * answer.cut_short
    lines = [f"{outcome.path} ({answer.width_px} x {answer.height_px})"]
    for ranked in answer.top_k:
        wnid = "" if ranked.wnid == ranked.label else f" ({ranked.wnid})"
        lines.append(f"  {ranked.probability:6.1%}  {ranked.label}{wnid}")
    point = "" if answer.operating_point in (None, answer.policy) else f", operating point {answer.operating_point}"
    lines.append(f"  answered by {answer.model}, policy {answer.policy}{point}{doubt}: {answer.because}")
    if answer.wrong_at_most is not None:
        lines.append(f"  promise: at most {answer.wrong_at_most:g} of the answers that are not in doubt are wrong")
    lines += [f"  ran {_run_line(run)}" for run in answer.ran]
    times = ", ".join(f"{name} {milliseconds(value)}" for name, value in times_ms.items() if value is not None)
    lines.append(f"  {milliseconds(outcome.latency_ms)} ms here, {milliseconds(stages.total)} in the daemon: {times}")
    energy = "not known"
    if answer.energy_mj is not None:
        energy = f"{answer.energy_mj:.1f} mJ (estimated from the calibration's means of the models that ran)"
    elif answer.energy_reason is not None:  # shortened: --json has the whole reason
        energy += f": {answer.energy_reason.partition(':')[0].partition(' (')[0]}"
    lines.append(f"  energy: {energy}")
    lines += [f"  outside the conditions of the calibration: {reason}" for reason in answer.out_of_conditions]
    return lines + _explanation_lines(answer)


def _work_ms(answer: Answer) -> float:
    """Return the image's working time: without waiting, and with its share of the time of each batch."""
    stages, runs = answer.stages_ms, [run.latency_ms / run.batch for run in answer.ran]
    return sum(filter(None, (stages.decode, stages.features, stages.choice, stages.input, *runs)))


def _run_line(run: Ran) -> str:
    """Return in words why one model ran, how sure it was, and how long it took."""
    batch = f" in a batch of {run.batch}" if run.batch > 1 else ""
    return f"{run.model}: {run.because}; confidence {run.confidence:.1%}, {milliseconds(run.latency_ms)} ms{batch}"


def _explanation_lines(answer: Answer) -> list[str]:
    """Return the lines that --explain adds; none if no explanation was requested."""
    explanation = answer.explanation
    if explanation is None:
        return []
    lines = [] if explanation.policy_because is None else [f"  the policy: {explanation.policy_because}"]
    if explanation.objective is not None:
        lines.append(f"  the calibration's objective is to save {explanation.objective}")
    if explanation.budget is not None:
        lines.append(f"  the power budget: {explanation.budget.budget_w:g} W; it {explanation.budget.state}")
    lines.append(f"  decoded at {explanation.decoded_width_px} x {explanation.decoded_height_px}")
    lines += [f"  step: {step}" for step in explanation.steps]
    if explanation.distance is not None:
        lines.append(f"  distance to the nearest images of the calibration: {explanation.distance:.3f}")
    if explanation.features is not None:
        lines.append("  features: " + ", ".join(f"{name} {value:.4g}" for name, value in explanation.features.items()))
    return lines
