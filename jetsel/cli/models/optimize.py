"""`jetsel models optimize`: cheaper rungs made of a model, and which of them earn a place."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jetsel.cli.options import ConfigFile, Json, print_json


def optimize(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Model to make cheaper ones from.")],
    photos: Annotated[
        Path,
        typer.Option(
            metavar="IMAGES",
            exists=True,
            help="Folder with one folder of images for each class, or a CSV of path,label.",
        ),
    ],
    learn_on: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            exists=True,
            help="Images to learn from, without labels (default: a third of IMAGES, then not used for evaluation).",
        ),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="Methods: int8, fp16, smaller, clustered (the default); pruning: plain, distorted, l1, "
            "outliers; factorising: svd, one-d, separable.",
        ),
    ] = None,
    max_drop: Annotated[
        float, typer.Option(min=0, metavar="POINTS", help="Points of accuracy that a candidate may lose.")
    ] = 30.0,
    target_ms: Annotated[float | None, typer.Option(min=0.001, metavar="MS", help="Target latency, in ms.")] = None,
    target_mb: Annotated[
        float | None, typer.Option(min=0.001, metavar="MB", help="Target size of the file, in MB.")
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of fine-tuning for each pruned or factorised model.")] = 16,
    minutes: Annotated[
        float, typer.Option(min=0.1, help="Time limit of fine-tuning for each model, in minutes.")
    ] = 20.0,
    add: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Candidate to add to the folder that the daemon reads; repeatable."),
    ] = None,
    family: Annotated[
        str | None, typer.Option(metavar="NAME", help="Family of MODEL, if the name is ambiguous.")
    ] = None,
    label_map: Annotated[
        Path | None,
        typer.Option(metavar="CSV", exists=True, help="CSV that maps folder names to labels."),
    ] = None,
    work: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for candidates (default: beside the calibrations).")
    ] = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Make cheaper models from one model, measure them on held-out images, and report which are worth adding.

    The served models change only with --add. Run an interrupted command again to continue it. Pruning, factorising and
    fp16 need pip install 'jetsel[export]'.
    """
    from jetsel.base.errors import CalibrationError
    from jetsel.base.state import state_folder
    from jetsel.calibrate.report import NO_PAGE, Section, render_sections
    from jetsel.cli.models.candidate_tables import drawn, sentences, tables_of
    from jetsel.cli.models.optimizing import OptimizeRequest, optimize
    from jetsel.cli.models.placed import first_writable, notes_of
    from jetsel.cli.terminal import Output, console
    from jetsel.site.site import read_site
    from jetsel.train.optimize.recipes import chosen
    from jetsel.zoo.placing import copy_to

    site = read_site(config)
    known, parent = site.zoo.find(model, family)
    identity = parent.manifest.identity[:12]
    folder = work or state_folder("optimize") / f"{known.name}-{parent.manifest.name}-{identity}"
    asked = OptimizeRequest(
        photos, learn_on, label_map, chosen(methods), max_drop, target_ms, target_mb, epochs, 60 * minutes, add or ()
    )
    with Output(quiet=json) as output:
        found = optimize(known, parent, site.config, asked, folder, output)
    for name in add or []:
        if name in found.failed or name not in found.models:
            raise CalibrationError(f"--add: {name} could not be made: {found.failed.get(name, 'see the table')}")
    target = first_writable(site.config)
    added = [copy_to(found.models[name], target) for name in add or []]
    notes = notes_of(site.config, target, known.name, add or []) if added else []
    tables = tables_of(found)
    title, section = f"Candidates of {parent.manifest.name}", Section("Candidates", (), tables)
    page = render_sections("jetsel models optimize", title, sentences(found), [section])
    report = None if page is None else folder / "report.html"
    if page is not None and report is not None:
        report.write_text(page, encoding="utf-8")
    if json:
        told = {
            "verdict": found.verdict,
            "entered": found.verdict.entered,
            "files": found.facts,
            "failed": found.failed,
        }
        print_json({**told, "tensorrt": found.engines, "added": add or [], "notes": notes, "report": str(report)})
        return
    out = console()
    for shown in tables:
        out.print(drawn(shown))
    for line in sentences(found):
        out.print(line, soft_wrap=True)
    out.print(NO_PAGE if report is None else f"the report: {report}", soft_wrap=True)
    for note in notes:
        typer.echo(f"note: {note}")
    if added:
        typer.echo(f"added to {target}: {', '.join(add or [])}; next: jetsel reload, and jetsel calibrate IMAGES")
    elif found.verdict.entered:
        typer.echo(f"to add them, run the same command with --add {' --add '.join(found.verdict.entered)}")
