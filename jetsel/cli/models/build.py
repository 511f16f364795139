"""`jetsel models build`: engines for this device's TensorRT and GPU, compared with ONNX Runtime before use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from jetsel.cli.options import ConfigFile, Json

if TYPE_CHECKING:
    from jetsel.cli.models.building import Outcome

EXIT_FAILED = 1
MOST_COMPARED = 500  # photographs: more change no figure that counts


def build(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...", help="Which models. Left out: all that the configuration runs on tensorrt."
        ),
    ] = None,
    family: Annotated[str | None, typer.Option(metavar="NAME", help="Only models of this family.")] = None,
    precision: Annotated[
        Literal["fp32", "fp16", "int8"] | None, typer.Option(help="Left out: [host] precision, fp16 as jetsel comes.")
    ] = None,
    photographs: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", exists=True, file_okay=False, help="Compare on these. Left out: on a few that jetsel has."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Build what stands already, too.")] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Then delete these models' engines of other versions, GPUs and settings.")
    ] = False,
    limit_s: Annotated[float, typer.Option(min=1, help="Give up on a model after this many seconds.")] = 14_400.0,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Build the engines that TensorRT runs, for this very device, each in a process of its own.

    Each is compared with ONNX Runtime on photographs, and refused where its answers differ; what stands already is left
    alone. Exit status 1 where one fails; the rest are built.
    """
    import msgspec

    from jetsel.cli import settings
    from jetsel.cli.models.build_progress import BuildProgress
    from jetsel.cli.models.building import BACKEND, asked_for, build_missing, on_tensorrt
    from jetsel.cli.models.samples import Folder, Own
    from jetsel.config import host_settings
    from jetsel.daemon.snapshot import limits_of
    from jetsel.engines.building.builder import Builder

    values = settings.read(settings.locate(config))
    candidates = asked_for(values, names or [], family)
    configured = host_settings(values.host)
    wanted = configured if precision is None else replace(configured, precision=precision)
    builder = Builder(wanted, limit_s)
    limits, decode_px = limits_of(values), max(one.model.manifest.input.shorter_px for one in candidates)
    compared = Own(limits, decode_px) if photographs is None else Folder(photographs, MOST_COMPARED, limits, decode_px)
    outcomes = []
    with BuildProgress(builder.about, compared.source, len(compared), quiet=json) as progress:
        for outcome in build_missing(builder, candidates, compared, progress.begin, progress.wait, force=force):
            outcomes.append(outcome)
            progress.end(outcome)
    built = [outcome.candidate.weights for outcome in outcomes if outcome.plan is not None]
    pruned = builder.prune(built, [configured]) if prune else []
    if json:
        found = [_plain(outcome) for outcome in outcomes]
        gone = [{"path": str(path), "bytes": size} for path, size in pruned]
        typer.echo(msgspec.json.encode({"compared_on": compared.source, "models": found, "pruned": gone}).decode())
    else:
        for path, size in pruned:
            typer.echo(f"deleted {path} ({size / 1e6:.1f} MB)")
        if any(outcome.was_built for outcome in outcomes):
            if wanted != configured:
                typer.echo(
                    f'the daemon loads {configured.precision} engines until [host] says precision = "{precision}"'
                )
            served = {one.name for one in on_tensorrt("", [one.model for one in candidates], 0, values)}
            for name in sorted({one.name for one in candidates} - served):
                typer.echo(f'for {name} to be served by TensorRT write under [models.backends]: {name} = "{BACKEND}"')
            typer.echo("a daemon that runs uses them after: jetsel reload")
    if any(outcome.plan is None for outcome in outcomes):
        raise typer.Exit(EXIT_FAILED)


def _plain(outcome: Outcome) -> dict[str, Any]:
    import msgspec

    plan = outcome.plan
    return {
        "family": outcome.candidate.family,
        "name": outcome.candidate.name,
        "was_built": outcome.was_built,
        "fault": outcome.reason,
        "engine": None if plan is None else str(plan.path),
        "record": None if plan is None else msgspec.to_builtins(plan.record),
    }
