"""`jetsel evaluate`: test the calibration in use on other images, with the real engines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jetsel.cli.calibrate import IMAGES, LabelMap, LabelsFrom, RecordingFile
from jetsel.cli.options import ConfigFile, FamilyName, Json, emit

ALL = "all"


def evaluate(
    photos: Annotated[Path, IMAGES],
    policy: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Policies to evaluate; `all` for every policy.")
    ] = None,
    family: FamilyName = None,
    label_map: LabelMap = None,
    labels_from: LabelsFrom = None,
    recording: RecordingFile = None,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    """Evaluate the calibration in use on labelled images, and compare it with every single model and the bounds.

    Every model runs on every image once; a second evaluation of the same images runs no model. Each policy is
    replayed on the recorded answers. Do not use the images of the calibration: the results would look too good.
    """
    from jetsel.calibrate.install import feature_clock, record, recording_job, recording_path
    from jetsel.calibrate.judge.evaluating import evaluate as judged
    from jetsel.calibrate.judge.evaluating import requested_policies
    from jetsel.calibrate.record.workers import Observer
    from jetsel.cli.terminal import ProgressOutput
    from jetsel.site.site import read_site

    calibrations = read_site(config).calibrations(family)
    path = recording or recording_path(calibrations, photos)
    job = recording_job(calibrations, path, photos, label_map, labels_from, all_models=True)  # all are compared
    with ProgressOutput(quiet=json) as output:
        in_use = calibrations.incumbent()
        calibration = in_use.calibration
        names = [] if ALL in (policy or [ALL]) else policy or []
        replayed = requested_policies(tuple(job.served), calibration, names)
        with output.interruptible() as stop:
            loaded = record(job, Observer(output.step, stop))
        output.print_recording(job, loaded)
        evaluation = judged(loaded.recording, calibration, replayed, feature_clock(job, loaded))
    photographs = len(loaded.recording.classes)
    for_json = {
        "photographs": photographs,
        "default_policy": in_use.policy,
        "labels_from": loaded.labels_from,
        "noisy": loaded.times.noisy,
        "energy_reason": loaded.times.energy_reason,
        **evaluation._asdict(),
    }

    def show() -> None:
        from jetsel.calibrate.report.overview import overview
        from jetsel.cli.terminal import console, listing_lines, promises_table

        out = console()
        best_single = evaluation.bounds["best single"].always or ""
        results = [*evaluation.policies.values(), evaluation.bounds["oracle"]]
        for line in listing_lines(overview(results, best_single, loaded.labels_from, {in_use.policy: "in use"})):
            out.print(line)
        checks = [one for one in evaluation.promises if one.policy == in_use.policy]
        if checks:
            out.print(f"the promises of {in_use.policy} on these images:")
            out.print(promises_table(checks))
        source = "no calibration is in use" if calibration is None else f"the calibration is of {calibration.created}"
        out.print(f"{photographs} images; {source}")
        if labels_from is not None:
            out.print(f"there were no labels: right means agreement with {labels_from}", style="yellow")

    emit(for_json, json, show)
