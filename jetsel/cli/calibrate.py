"""`jetsel calibrate`: from the owner's photographs to a chooser that is proven better, its report, and a way back."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from jetsel.cli.options import ConfigFile, Endpoint

if TYPE_CHECKING:
    from jetsel.calibrate.calibrating import Calibrated
    from jetsel.calibrate.goal import Goal
    from jetsel.calibrate.record import Found, Loaded, Recorded
    from jetsel.cli.metering import Metering
    from jetsel.cli.progress import Output
    from jetsel.cli.shelf import Shelf
    from jetsel.config import Power
    from jetsel.policies.calibration import Calibration
    from jetsel.zoo import Family

Photos = Annotated[
    Path,
    typer.Argument(
        metavar="PHOTOS",
        exists=True,
        help="A folder with one folder of photographs for each class, or a CSV of path,label.",
    ),
]
FamilyName = Annotated[
    str | None,
    typer.Option(
        "--family", metavar="NAME", help="The family of models. Left out: the configuration's default family."
    ),
]
LabelMap = Annotated[
    Path | None,
    typer.Option(metavar="CSV", exists=True, help="Lines of folder,label for folders that are called otherwise."),
]
LabelsFrom = Annotated[
    str | None,
    typer.Option(metavar="MODEL", help="Without labels: calibrate for agreement with this model's answers."),
]


def calibrate(
    photos: Photos,
    family: FamilyName = None,
    label_map: LabelMap = None,
    labels_from: LabelsFrom = None,
    objective: Annotated[
        Literal["time", "energy"], typer.Option(help="What to save; energy needs a sensor and its idle power measured.")
    ] = "time",
    criterion: Annotated[
        Literal["top1", "top5"], typer.Option(help="What counts as right when it is decided whether to install.")
    ] = "top1",
    max_time_ms: Annotated[
        float | None, typer.Option(min=0.001, help="The most accurate policy within this mean time.")
    ] = None,
    max_energy_mj: Annotated[
        float | None,
        typer.Option(min=0.001, help="The most accurate policy within this mean energy, above idle power."),
    ] = None,
    min_accuracy: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="The policy that costs least of the objective and is right on this share, 0 to 1."
        ),
    ] = None,
    theta: Annotated[
        float, typer.Option(min=0, help="Points of accuracy that a model must add to become part of the chain.")
    ] = 0.5,
    recording: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to record. Left out: beside the calibrations.")
    ] = None,
    times_from: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", exists=True, help="Take times and energies from this recording, made on the board."
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write the report. Left out: beside the recording.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Install even what is not proven better.")] = False,
    if_changed: Annotated[
        bool,
        typer.Option(
            "--if-changed", help="Do nothing where photographs, models and options are those of the last time."
        ),
    ] = False,
    json_progress: Annotated[
        bool, typer.Option("--json-progress", help="Print progress and outcome as lines of JSON, for programs.")
    ] = False,
    config: ConfigFile = None,
    endpoint: Endpoint = None,
) -> None:
    """Fit the chooser to your own labelled photographs, and install it if it is proven better.

    Every model looks at every photograph once; that is kept in one file, and goes on where it was if it is
    interrupted. Then every policy is compared on photographs that it was not fitted on. What wins is installed only if
    it is better than what is in use by more than the noise. Go back with: jetsel calibration rollback.
    """
    from jetsel.calibrate.goal import Goal
    from jetsel.cli import shelf as shelves
    from jetsel.cli import unchanged
    from jetsel.cli.progress import Output
    from jetsel.errors import CalibrationError

    shelf = shelves.find(config, family)
    goal = Goal(objective, max_time_ms, min_accuracy, max_energy_mj)
    path = recording or _recording_path(shelf, photos)
    if report is not None and not report.parent.is_dir():
        raise CalibrationError(f"--report: there is no folder {report.parent}: make it first")
    output = Output(as_json=json_progress)
    given = (goal, criterion, theta, labels_from, force, unchanged.state_of(times_from))
    made_from = unchanged.made_from(models_of(shelf), shelf.config, photos, label_map, labels_from is None, given)
    if if_changed and unchanged.is_known(path, made_from):
        output.unchanged(path)
        return
    with output:
        loaded = record(shelf, path, photos, label_map, labels_from, times_from, output, goal)
        found = fit(shelf, loaded, goal, criterion, theta, output)
    _finish(shelf, found, report or path.with_suffix(".html"), output, endpoint, force=force)
    with contextlib.suppress(OSError):  # the recording stands: the next time does what this time did
        unchanged.remember(path, made_from)


def _recording_path(shelf: Shelf, photos: Path) -> Path:
    """One file for each family and source, so that the same command goes on with its own."""
    import hashlib

    source = hashlib.sha256(str(photos.resolve()).encode()).hexdigest()[:8]
    return shelf.folder / "recordings" / f"{shelf.family}-{photos.resolve().name}-{source}.sqlite"


def models_of(shelf: Shelf) -> Family:
    """The shelf's family, of which the configuration has at least one model served; raises CalibrationError."""
    from jetsel.daemon.family import served_models
    from jetsel.errors import CalibrationError

    if shelf.models is None:
        raise CalibrationError(f"family {shelf.family} has no models here: see `jetsel models list`")
    if not served_models(shelf.models, shelf.config):
        raise CalibrationError(f"models.only names no model of family {shelf.family}: name one, or leave it out")
    return shelf.models


def record(
    shelf: Shelf,
    path: Path,
    photos: Path,
    label_map: Path | None,
    labels_from: str | None,
    times_from: Path | None,
    output: Output,
    goal: Goal | None = None,
) -> Loaded:
    """Record what is not recorded yet, and read it back. Raises KeyboardInterrupt where Ctrl-C ended it.

    Raises CalibrationError before anything is recorded where the goal needs energy and it will not be known.
    """
    from jetsel.calibrate import record as recording
    from jetsel.cli.metering import metering
    from jetsel.daemon.family import served_models
    from jetsel.errors import CalibrationError

    family = models_of(shelf)
    served = served_models(family, shelf.config)
    if labels_from is not None and labels_from not in served:
        raise CalibrationError(f"--labels-from: family {family.name} has no model {labels_from}: {', '.join(served)}")
    found = recording.find(photos, family.labels, label_map, labels_from is None)
    with metering(shelf.config.power, times_from, tuple(served)) as energy:
        if goal is not None and goal.needs_energy and energy.unknown is not None:
            raise CalibrationError(f"the goal needs energy, and it is not known: {energy.unknown}")
        done = _into(path, shelf, found, energy, output)
    output.recorded(path, done)
    loaded = recording.load(path, family, tuple(served), labels_from)
    return loaded if times_from is None else recording.times_from(loaded, times_from)


def _into(path: Path, shelf: Shelf, found: Found, energy: Metering, output: Output) -> Recorded:
    """Record what is not recorded yet."""
    from jetsel.calibrate import record as recording
    from jetsel.daemon.family import served_models
    from jetsel.daemon.snapshot import limits_of
    from jetsel.errors import CalibrationError

    family, config = models_of(shelf), shelf.config
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise CalibrationError(f"{path.parent}: {fault.strerror}: say where to record with --recording FILE") from fault
    # The family stays whole: what its largest input is decides how photographs are decoded, here and in the daemon.
    asked = replace(family, models=tuple(served_models(family, config).values()))
    with output.interruptible() as stop, recording.loaded_models(asked, config) as engines:
        options = recording.Options(
            limits=limits_of(config),
            meter=energy.here.meter,
            unmetered=energy.here.reason,
            doubt=energy.here.doubt,
            idle_half_w=energy.here.idle_half_w,
            sysfs=config.power.sysfs,
        )
        done = recording.record(path, family, engines, found, options, tell=output.recording, stop=stop)
    if not done.finished:
        raise KeyboardInterrupt
    return done


def fit(
    shelf: Shelf, loaded: Loaded, goal: Goal, criterion: Literal["top1", "top5"], theta: float, output: Output
) -> Calibrated:
    """Compare every policy on held-out photographs, and fit the calibration."""
    from jetsel.calibrate.assemble import Identity
    from jetsel.calibrate.calibrating import Order, calibrate
    from jetsel.calibrate.from_files import FeatureClock
    from jetsel.daemon.snapshot import limits_of
    from jetsel.features import table_hash

    family = models_of(shelf)
    limits = limits_of(shelf.config)
    paths = loaded.recording.paths
    order = Order(
        names=tuple(family.labels.names),
        goal=goal,
        decides=criterion,
        theta_points=theta,
        installed=_installed(shelf, loaded.models_sha256),
        labels_from=loaded.labels_from,
        machine=machine_of(shelf.config.power, loaded.times.conditions),
    )
    return calibrate(
        loaded,
        Identity(family.name, family.labels.sha256, loaded.models_sha256, table_hash(), family.decode_px),
        order,
        FeatureClock(paths, family.decode_px, limits, loaded.times.features_ms),
        output.fitting,
    )


def machine_of(power: Power, conditions: Mapping[str, str]) -> dict[str, Any]:
    """What this board says of itself, where times and energies were measured on it as it is now; else nothing.

    conditions: of the recording, in words. They may be of another machine, or of a day when it was set otherwise.
    """
    from jetsel.calibrate.record.conditions import gather
    from jetsel.power.machine import Machine, kept
    from jetsel.power.place import JTOP_S

    now = gather({}, power.sysfs).described()
    if any(conditions.get(what) != now[what] for what in ("board", "power mode", "CPU clock")):
        return {}
    with Machine(power.sysfs, power.jtop) as machine:
        return kept(machine.facts(wait_s=JTOP_S if power.jtop else 0.0))


def _installed(shelf: Shelf, models_sha256: Mapping[str, str]) -> Calibration | None:
    """The owner's calibration in use; None where there is none, or it was made for other models."""
    entry = next((entry for entry in shelf.entries() if entry.is_current and entry.number), None)
    if entry is None or entry.reason is not None or entry.calibration is None:
        return None
    return entry.calibration if entry.calibration.model_sha256 == models_sha256 else None


def _finish(
    shelf: Shelf, found: Calibrated, report: Path, output: Output, endpoint: str | None, *, force: bool
) -> None:
    """Install what is better, and write the report where its libraries are installed; its gist is printed anyway."""
    import msgspec

    from jetsel.calibrate.report import render
    from jetsel.cli.shelf import tell_daemon
    from jetsel.errors import CalibrationError
    from jetsel.policies import installed

    installs = found.is_better or force
    page = render(msgspec.structs.replace(found.findings, installed=installs))
    entry = installed.install(found.calibration, shelf.folder, shelf.family, page) if installs else None
    told = tell_daemon(shelf, entry, endpoint) if entry is not None else None
    try:
        if page is not None:
            report.write_text(page, encoding="utf-8")
    except OSError as fault:
        done = "nothing was installed" if entry is None else f"number {entry.number} was installed"
        raise CalibrationError(f"{report}: {fault.strerror}: {done}; name another file with --report") from fault
    output.finished(found, None if page is None else report, entry, None if told is None else told.said)
