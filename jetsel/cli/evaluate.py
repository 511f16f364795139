"""`jetsel evaluate`: what the calibration in use gives on other photographs, with the real engines."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from jetsel.cli.calibrate import FamilyName, LabelMap, LabelsFrom, Photos
from jetsel.cli.options import ConfigFile, Json, print_json

ALL = "all"


def evaluate(
    photos: Photos,
    policy: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Which policies; all: each of them.")] = None,
    criterion: Annotated[Literal["top1", "top5"], typer.Option(help="What counts as right.")] = "top1",
    family: FamilyName = None,
    label_map: LabelMap = None,
    labels_from: LabelsFrom = None,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    """Judge the calibration in use on labelled photographs, beside every single model and the bounds.

    Every model runs on every photograph, and each policy is replayed on what they said. Photographs that the
    calibration was made from flatter it: show it others.
    """
    import tempfile
    from pathlib import Path

    from jetsel.calibrate.command import clock_of, record
    from jetsel.calibrate.evaluating import asked
    from jetsel.calibrate.evaluating import evaluate as judged
    from jetsel.cli import family_calibrations
    from jetsel.cli.progress import Output
    from jetsel.errors import CalibrationError

    calibrations = family_calibrations.find(config, family)
    with tempfile.TemporaryDirectory(prefix="jetsel-") as folder, Output(quiet=json) as output:
        job = calibrations.job(Path(folder, "recording.sqlite"), photos, label_map, labels_from)
        entry = calibrations.entry(None)
        if entry.reason is not None:  # it may be whole, and made for other models than are served
            raise CalibrationError(entry.reason)
        calibration = entry.usable()
        wanted = [] if ALL in (policy or [ALL]) else policy or []
        replayed = asked(tuple(job.served), calibration, criterion, wanted)
        with output.interruptible() as stop:
            loaded = record(job, output.step, stop)
        output.recorded(job.path, loaded)
        clock, reason = clock_of(job, loaded), loaded.times.energy_reason
        policies, bounds = judged(loaded.recording, calibration, criterion, replayed, clock, reason)
    if json:
        said = {
            "photographs": len(loaded.recording.classes),
            "criterion": criterion,
            "labels_from": loaded.labels_from,
            "noisy": loaded.times.noisy,
            "energy_reason": reason,
            "policies": policies,
            "bounds": bounds,
        }
        print_json(said)
        return
    from jetsel.cli.comparison import results_table
    from jetsel.cli.terminal import console

    out = console()
    out.print(results_table(criterion, [*policies.values(), *bounds.values()]))
    out.print(f"{len(loaded.recording.classes)} photographs; the calibration is of {calibration.created}", markup=False)
    if labels_from is not None:
        out.print(f"there were no labels: right means agreement with {labels_from}", markup=False, style="yellow")
