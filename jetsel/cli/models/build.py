"""`jetsel models build`: build engines for this device's TensorRT and GPU, and compare them with ONNX Runtime."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from jetsel.cli.options import ConfigFile, Json, print_json

if TYPE_CHECKING:
    from jetsel.engines.building.plans import PlanRecord

EXIT_FAILED = 1
MOST_COMPARED = 500  # images; more would not change the figures noticeably


def build(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...", help="Models to build (default: all that the configuration runs on tensorrt)."
        ),
    ] = None,
    family: Annotated[str | None, typer.Option(metavar="NAME", help="Family of the models.")] = None,
    precision: Annotated[
        Literal["fp32", "fp16", "int8"] | None,
        typer.Option(help="Precision of the engine (default: [host] precision)."),
    ] = None,
    photographs: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            exists=True,
            file_okay=False,
            help="Images to compare on (default: a few that ship with jetsel).",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Build engines that exist already, too.")] = False,
    limit_s: Annotated[float, typer.Option(min=1, help="Time limit for each model, in seconds.")] = 14_400.0,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Build TensorRT engines for this device, each in a process of its own.

    Each engine is compared with ONNX Runtime on images, and rejected if its answers differ. Existing engines are kept.
    The exit status is 1 if a model failed; the others are built.
    """
    from msgspec import structs

    from jetsel.base.errors import JetselError
    from jetsel.cli.models.candidates import BACKEND, engine_order, requested_candidates, runs_on_tensorrt
    from jetsel.cli.models.samples import built_in_images, images_in
    from jetsel.engines.building.builder import Builder
    from jetsel.engines.building.trial import ENOUGH
    from jetsel.site import config_file
    from jetsel.site.configured import limits_of

    def show(line: str, *, is_result: bool = False) -> None:
        if not json:
            typer.echo(line, err=not is_result)

    values = config_file.locate_and_read(config)
    candidates = requested_candidates(values, names or [], family)
    settings = values.host if precision is None else structs.replace(values.host, precision=precision)
    builder = Builder(settings, limit_s)
    limits, decode_px = limits_of(values), max(one.model.manifest.input.shorter_px for one in candidates)
    compared = (
        built_in_images(limits, decode_px)
        if photographs is None
        else images_in(photographs, MOST_COMPARED, limits, decode_px)
    )
    show(f"TensorRT {builder.about['version']} on {builder.about['gpu']['name']}; comparing on {compared.source}")
    if len(compared) < ENOUGH:
        show(f"fewer than {ENOUGH} images show only whether an engine is broken: give more with --photographs DIR")
    rows: list[dict[str, Any]] = []
    for number, candidate in enumerate(candidates, 1):
        plan, fault = None if force else builder.installed(candidate.weights), None
        was_built = plan is None
        if plan is None:
            show(f"building {number} of {len(candidates)}: {candidate.name}")
            try:
                waiting = partial(show, "waiting for another build")
                plan = builder.build(engine_order(candidate, compared), waiting, force=force)
            except JetselError as error:
                was_built, fault = False, str(error)
        outcome = f"not built: {fault}" if plan is None else _result_text(plan.record, was_built=was_built)
        text = " ".join(outcome.replace(f"{candidate.name}: ", "", 1).split())
        show(f"{candidate.family.name} {candidate.name}: {text}", is_result=True)
        record, engine = (None, None) if plan is None else (plan.record, str(plan.path))
        fields = {"family": candidate.family.name, "name": candidate.name, "was_built": was_built, "fault": fault}
        rows.append(fields | {"engine": engine, "record": record})
    if json:
        print_json({"compared_on": compared.source, "models": rows})
    elif any(one["was_built"] for one in rows):
        if settings != values.host:
            typer.echo(
                f"the daemon loads {values.host.precision} engines; to use the new ones, set "
                f'precision = "{precision}" under [host]'
            )
        for name in sorted({one.name for one in candidates if not runs_on_tensorrt(one.model, values)}):
            typer.echo(f'to serve {name} with TensorRT, write under [models.backends]: {name} = "{BACKEND}"')
        typer.echo("to use them in a running daemon: jetsel reload")
    if any(one["fault"] is not None for one in rows):
        raise typer.Exit(EXIT_FAILED)


def _result_text(record: PlanRecord, *, was_built: bool) -> str:
    """Return the size, accuracy and speed of an engine in words. was_built: now, not in an earlier run."""
    from jetsel.cli.terminal import milliseconds

    check = record.check
    began = f"built in {record.build_s:.1f} s" if was_built else f"stands, built {record.built}"
    device = "" if check.device_ms is None else f", {milliseconds(check.device_ms)} ms on the device"
    figures = (
        f"{record.key.precision}, {record.plan_bytes / 1e6:.1f} MB; top-1 agreement with ONNX Runtime "
        f"{check.agreement:.1%} on {check.source}, largest logit difference {check.largest_difference:.2g} of a "
        f"spread of {check.spread:.3g}{device}"
    )
    return "; ".join([f"{began}, {figures}", *record.notes])
