"""`jetsel calibrate`: fit a calibration to the owner's images, report it, and install it if it is better."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from msgspec.structs import asdict

from jetsel.cli.options import ConfigFile, Endpoint, FamilyName, Json, emit

if TYPE_CHECKING:
    from rich.table import Table

    from jetsel.artefact.installed import Installed
    from jetsel.calibrate.judge.findings import Findings
    from jetsel.site.site import FamilyCalibrations

IMAGES = typer.Argument(
    metavar="IMAGES", exists=True, help="Folder with one folder of images for each class, or a CSV of path,label."
)
LabelMap = Annotated[
    Path | None, typer.Option(metavar="CSV", exists=True, help="CSV that maps folder names to labels.")
]
RecordingFile = Annotated[
    Path | None, typer.Option("--recording", metavar="FILE", help="Recording file (default: beside the calibrations).")
]
LabelsFrom = Annotated[str | None, typer.Option(metavar="MODEL", help="Model whose answers replace labels.")]


def calibrate(
    photos: Annotated[Path | None, IMAGES] = None,
    family: FamilyName = None,
    label_map: LabelMap = None,
    labels_from: LabelsFrom = None,
    objective: Annotated[
        Literal["time", "energy"], typer.Option(help="Cost to save. Energy needs a sensor and measured idle power.")
    ] = "time",
    max_time_ms: Annotated[
        float | None, typer.Option(min=0.001, help="Choose the most accurate policy within this mean time.")
    ] = None,
    max_energy_mj: Annotated[
        float | None,
        typer.Option(min=0.001, help="Choose the most accurate policy within this mean energy above idle power."),
    ] = None,
    min_accuracy: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Choose the cheapest policy that is right on at least this share, 0 to 1."),
    ] = None,
    may_lose: Annotated[
        float, typer.Option(metavar="POINTS", min=0, max=100, help="Points of accuracy that a policy may lose.")
    ] = 0.5,
    unknown: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", exists=True, help="Images that show no class of the family, to test what is refused."
        ),
    ] = None,
    wrong_at_most: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            max=0.99,
            help="Maximum share of wrong answers to promise; the calibration is installed even if no policy is better.",
        ),
    ] = None,
    recording: RecordingFile = None,
    sizes: Annotated[
        str | None,
        typer.Option(metavar="PIXELS", help="Shorter sides of reduced copies to calibrate on too, as in 160,64."),
    ] = None,
    boxes: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV",
            exists=True,
            help="Boxes in place of IMAGES: rows of file,left,top,right,bottom,label, in shares.",
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Report to write (default: beside the recording).")
    ] = None,
    all_models: Annotated[
        bool,
        typer.Option("--all-models", help="Record every model to the end, even if a cheaper one makes it superfluous."),
    ] = False,
    retime: Annotated[
        bool,
        typer.Option(
            "--retime", help="Fit the shipped calibration to the models' times on this machine; takes no IMAGES."
        ),
    ] = False,
    policy: Annotated[
        str | None, typer.Option(metavar="NAME", help="Policy to install instead of the best one.")
    ] = None,
    more: Annotated[
        Literal["multiplexer"] | None,
        typer.Option("--with", help="Policy to fit as well (default: none, since fitting it takes long)."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Install even if accuracy may be lost. Limits still hold.")
    ] = False,
    json: Json = False,
    config: ConfigFile = None,
    endpoint: Endpoint = None,
) -> None:
    """Fit the policies to your own labelled images, and install the best one if it is better.

    Every model runs on every image once. The results are kept in one file, so an interrupted command continues where
    it stopped. Then every policy is compared on images that it was not fitted on. The best one is installed if it
    costs less than the one in use and loses at most a small margin of accuracy (see --may-lose), or if it is surely
    more accurate and costs no more. A family without a calibration gets the best one in any case. To go back: jetsel
    calibration rollback.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy is imported; small arrays need no threads
    from jetsel.base.errors import CalibrationError
    from jetsel.calibrate.fit.goal import Goal
    from jetsel.calibrate.install import (
        check_requested_policy,
        fit,
        install,
        record,
        recording_job,
        recording_path,
        unknown_images_job,
    )
    from jetsel.calibrate.judge.decision import InstallRequest
    from jetsel.calibrate.record.workers import Observer
    from jetsel.calibrate.report import render
    from jetsel.cli.calibration import reload_daemon
    from jetsel.cli.terminal import ProgressOutput, console
    from jetsel.policies.registry import kinds_with
    from jetsel.site.site import read_site

    calibrations = read_site(config).calibrations(family)
    if retime:
        _retime(calibrations, endpoint, json=json)
        return
    if (photos is None) == (boxes is None):
        raise typer.BadParameter("name either a folder of images or --boxes CSV, or use --retime", param_hint="IMAGES")
    photos, shorter_px = photos or boxes, _parse_sizes(sizes)
    assert photos is not None
    path = recording or recording_path(calibrations, photos, shorter_px)
    if report is not None and not report.parent.is_dir():
        raise CalibrationError(f"--report: there is no folder {report.parent}: make it first")
    job = recording_job(calibrations, path, photos, label_map, labels_from, all_models=all_models, sizes=shorter_px)
    order = InstallRequest(
        goal=Goal(objective, max_time_ms, min_accuracy, max_energy_mj, may_lose),
        in_use=calibrations.incumbent(),
        policy=policy,
        wrong_at_most=wrong_at_most,
        kinds=kinds_with(() if more is None else (more,)),
        force=force,
        command=shlex.join(["jetsel", *sys.argv[1:]]),
    )
    check_requested_policy(job, order)
    with ProgressOutput(quiet=json) as output:
        with output.interruptible() as stop:
            loaded = record(job, Observer(output.step, stop, output.print_plan), order.goal)
            unknown_loaded = None
            if unknown is not None:
                job_unknown = unknown_images_job(calibrations, job, loaded.recording.models, unknown)
                unknown_loaded = record(job_unknown, Observer(output.step, stop))
        output.print_recording(job, loaded)
        fitted = fit(job, loaded, order, output.step, unknown_loaded)
    findings = fitted.findings
    page = render(findings, job.limits)
    entry = install(calibrations, loaded, fitted.calibration, page) if findings.installed else None
    daemon = reload_daemon(calibrations, entry, endpoint) if entry is not None else None
    written = None if page is None else _write_report(page, report or path.with_suffix(".html"), entry)
    outcome = {
        "best_single": findings.comparison.best_single,
        "installed": None if entry is None else entry.number,
        "daemon": None if daemon is None else daemon.message,
        "is_served": daemon is not None and daemon.is_served,
        "report": None if written is None else str(written),
    }

    def show() -> None:
        out = console()
        for line in outcome_lines(findings, outcome):
            out.print(line, soft_wrap=isinstance(line, str))

    emit(asdict(findings) | outcome, json, show)


def _parse_sizes(text: str | None) -> tuple[int, ...]:
    """Return the pixels in --sizes, the largest first; raises BadParameter."""
    try:
        sizes = {int(number) for number in (text or "").split(",") if number.strip()}
    except ValueError:
        sizes = {0}
    if sizes and min(sizes) < 1:
        raise typer.BadParameter(f"{text}: write pixels with commas between them: 160,64", param_hint="--sizes")
    return tuple(sorted(sizes, reverse=True))


def _retime(calibrations: FamilyCalibrations, endpoint: str | None, *, json: bool) -> None:
    """Fit the shipped calibration to this machine, install it, reload the daemon, and print the outcome.

    Raises CalibrationError or EngineFailedError.
    """
    from jetsel.artefact import installed
    from jetsel.base.errors import CalibrationError
    from jetsel.calibrate.retiming import retime
    from jetsel.cli.calibration import reload_daemon
    from jetsel.cli.terminal import ProgressOutput, milliseconds
    from jetsel.site.calibration_in_use import find_shipped

    family, served = calibrations.served()
    shipped_calibration = find_shipped(family)
    if shipped_calibration is None:
        raise CalibrationError(f"family {calibrations.family} ships without a calibration: name a folder of images")
    usable, folder = shipped_calibration.usable_calibration(), shipped_calibration.directory
    with ProgressOutput(quiet=json) as output:
        fitted = retime(family, served, usable, folder, calibrations.config, output.step)
        number = installed.install(fitted, calibrations.folder, calibrations.family).number
    daemon = reload_daemon(calibrations, calibrations.entry(number), endpoint)
    facts = {"costs_ms": fitted.costs_ms, "default_policy": fitted.default_policy, "verdict": fitted.because}
    times = ", ".join(f"{model} {milliseconds(ms)}" for model, ms in fitted.costs_ms.items())
    lines = [
        f"ms per image on this machine: {times}",
        f"{fitted.default_policy} answers by default: {fitted.because}",
        f"installed as number {number}; to undo: jetsel calibration rollback",
        daemon.message,
    ]
    emit(facts | {"installed": number, "daemon": daemon.message}, json, "\n".join(lines))


def _write_report(page: str, report: Path, entry: Installed | None) -> Path:
    """Write the report, and return its path. entry: what was installed, None if nothing. Raises CalibrationError."""
    from jetsel.base.errors import CalibrationError

    try:
        report.write_text(page, encoding="utf-8")
    except OSError as fault:
        note = "nothing was installed" if entry is None else f"number {entry.number} was installed"
        raise CalibrationError(f"{report}: {fault.strerror}: {note}; name another file with --report") from fault
    return report


def _install_sentence(findings: Findings, outcome: dict[str, Any]) -> str:
    """Return one sentence about what was installed and which policy is used now, or why nothing was installed."""
    winner, rival = findings.winner, findings.calibration.rival  # rival: the policy that was used before
    if outcome["installed"] is not None:
        changed = f": its default policy is {winner}"
        if winner == rival:
            changed = f": {winner} goes on answering, and requests can name the other policies"
        elif outcome["is_served"]:
            changed = f": {winner} answers by default now, in place of {rival}"
        return f"installed as number {outcome['installed']}{changed}; to undo: jetsel calibration rollback"
    forced = "" if winner == rival else f"--force installs {winner}, "
    reason = f"{rival} remains in use; {forced}--policy NAME installs another"
    if not findings.is_allowed:
        reason = f"no policy is within the limits, {winner} comes closest; raise the limits, or add a model"
    return f"nothing was installed: {reason}"


def outcome_lines(findings: Findings, outcome: dict[str, Any]) -> Iterator[str | Table]:
    """Yield a summary for a terminal, as lines and tables. outcome: what `calibrate` did, see there."""
    from jetsel.calibrate.report import NO_PAGE
    from jetsel.cli.terminal import outcome_table, result_sentences

    yield from outcome_table(findings)
    yield from result_sentences(findings)
    yield findings.verdict
    yield _install_sentence(findings, outcome)
    if outcome["daemon"] is not None:
        yield outcome["daemon"]
    yield NO_PAGE if outcome["report"] is None else f"the report: {outcome['report']}"
