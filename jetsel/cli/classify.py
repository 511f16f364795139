"""`jetsel classify`: classify image files with a running daemon, several at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from jetsel.base.errors import JetselError
from jetsel.cli.options import AskedFamily, DaemonConfig, Endpoint, OneModel, TimeoutMs, print_json
from jetsel.site.config_file import endpoint_of

if TYPE_CHECKING:
    from jetsel.cli.answers import Outcome
    from jetsel.client import AsyncClient
    from jetsel.wire import Answer


def classify(
    images: Annotated[list[Path], typer.Argument(metavar="IMAGE", help="JPEG, PNG or WebP files, or folders of them.")],
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object for each image, in the order given.")
    ] = False,
    family: AskedFamily = None,
    model: OneModel = None,
    policy: Annotated[
        str | None, typer.Option(help="Policy that chooses the models (default: the family's; see `jetsel status`).")
    ] = None,
    top_k: Annotated[int, typer.Option(min=1, max=1000, help="Number of labels to return.")] = 5,
    deadline_ms: Annotated[float | None, typer.Option(min=0, help="Deadline for each answer, in ms.")] = None,
    on_doubt: Annotated[
        Literal["use", "refuse"] | None,
        typer.Option(help="Action if no model is likely to be right: use the fallback, or refuse."),
    ] = None,
    box: Annotated[
        list[str] | None,
        typer.Option(metavar="X,Y,W,H", help="Classify this part of each image; repeat the option for more parts."),
    ] = None,
    boxes_unit: Annotated[
        Literal["pixels", "shares"],
        typer.Option(help="Unit of --box: pixels, or shares of the image's sides (0 to 1)."),
    ] = "pixels",
    explain: Annotated[bool, typer.Option("--explain", help="Show how each choice was made.")] = False,
    on_device: Annotated[bool, typer.Option("--on-device", help="Do not send the image to an edge server.")] = False,
    least_accuracy: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Minimum accuracy of the answer according to the calibration (0 to 1)."),
    ] = None,
    most_energy_mj: Annotated[
        float | None, typer.Option(min=0, help="Maximum mean energy of the answer according to the calibration, in mJ.")
    ] = None,
    wrong_at_most: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Maximum share of wrong answers; answers that are too unsure are in doubt."),
    ] = None,
    config: DaemonConfig = None,
    endpoint: Endpoint = None,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=1, max=1000, help="Number of images to process at the same time.")
    ] = 16,
    timeout_ms: TimeoutMs = 30_000,
    max_image_mb: Annotated[
        float, typer.Option(help="Largest image to send, in MB; use the daemon's [server] max_image_mb.")
    ] = 16,
) -> None:
    """Print what each image shows.

    A single image is shown with all details of its answer. The exit status is 0 only if every image was answered.
    """
    import asyncio  # here, because every command imports this file, and the daemon does not need asyncio

    from jetsel.client import AsyncClient

    settings: dict[str, Any] = {"family": family, "model": model, "policy": policy, "top_k": top_k}
    settings |= {"deadline_ms": deadline_ms, "explain": explain}
    settings |= {"on_doubt": on_doubt, "on_device": on_device}
    settings |= {"least_accuracy": least_accuracy, "most_energy_mj": most_energy_mj, "wrong_at_most": wrong_at_most}
    if box:
        settings |= {"boxes": [_parse_box(text) for text in box], "boxes_unit": boxes_unit}
    images = _list_files(images)
    rows: list[Outcome] = []
    show = rows.append  # several outcomes become a table
    if json or explain or (len(images) == 1 and len(box or ()) < 2):
        show = _print_json if json else _print_details
    client = AsyncClient(endpoint_of(endpoint, config), timeout_ms=timeout_ms, max_image_mb=max_image_mb)
    failed = asyncio.run(_classify_all(client, images, settings, jobs, show))
    if rows:
        from jetsel.cli.answers import print_table

        print_table(rows)
    if failed:
        raise typer.Exit(1)


def _parse_box(text: str) -> list[float]:
    """Return the four numbers of a --box; raises BadParameter."""
    try:
        x, y, width, height = (float(number) for number in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"{text}: write X,Y,W,H: 10,20,100,80", param_hint="--box") from None
    return [x, y, width, height]


def _list_files(images: list[Path]) -> list[Path]:
    """Return the given files, and the images in given folders at any depth; print what is skipped in these."""
    from jetsel.base.names import LeftOut
    from jetsel.calibrate.listing import images_below, left_out_lines  # here, because it loads OpenCV

    paths: list[Path] = []
    left_out: list[LeftOut] = []
    for path in images:
        entries = list(images_below(path)) if path.is_dir() else [path]
        left_out += (entry for entry in entries if isinstance(entry, LeftOut))
        files = [entry for entry in entries if isinstance(entry, Path)]
        if not files:
            fault = "; ".join((f"{path}: holds no JPEG, PNG or WebP file", *left_out_lines(left_out)))
            raise typer.BadParameter(fault, param_hint="IMAGE")
        paths += files
    for line in left_out_lines(left_out):
        typer.echo(line, err=True)
    return paths


async def _classify_all(
    client: AsyncClient, images: list[Path], settings: dict[str, Any], jobs: int, show: Callable[[Outcome], None]
) -> int:
    """Classify images, `jobs` at a time, and show the outcomes in the order given; return how many failed."""
    import asyncio

    job_slots = asyncio.Semaphore(jobs)

    async def classify_file(path: Path) -> list[Outcome]:
        async with job_slots:
            return await _outcomes(client, path, settings)

    failed = 0
    async with client:
        daemon = await client.status()  # fails once, rather than for each image, if no daemon is listening
        if daemon.state == "loading":
            typer.echo("the daemon is loading its models: waiting for it, which counts in the time here", err=True)
        tasks = [asyncio.create_task(classify_file(path)) for path in images]
        try:
            for task in tasks:
                for outcome in await task:
                    failed += isinstance(outcome.result, Exception)
                    show(outcome)
        finally:
            for task in tasks:
                task.cancel()
    return failed


async def _outcomes(client: AsyncClient, path: Path, settings: dict[str, Any]) -> list[Outcome]:
    """Return the outcome of an image; if `settings` has boxes, one for each box, or one error for the whole image."""
    from jetsel.calibrate.listing import printable
    from jetsel.cli.answers import Outcome

    name = str(printable(path))
    boxes = settings.get("boxes")
    began = time.perf_counter()
    results: Sequence[Answer | JetselError | OSError]
    try:
        outcome = await client.classify(path, **settings)
        results = outcome if isinstance(outcome, list) else [outcome]
    except (JetselError, OSError) as error:
        results, boxes = [error], None
    took_ms = (time.perf_counter() - began) * 1e3
    names = [name] if boxes is None else [f"{name} {','.join(f'{number:g}' for number in box)}" for box in boxes]
    return [Outcome(one, took_ms, result) for one, result in zip(names, results, strict=True)]


def _print_json(outcome: Outcome) -> None:
    from jetsel.cli.answers import as_plain

    print_json(as_plain(outcome))


def _print_details(outcome: Outcome) -> None:
    from jetsel.cli.answers import details, reason

    if isinstance(outcome.result, Exception):
        typer.echo(f"jetsel: {outcome.path}: {reason(outcome.result)}", err=True)
    else:
        typer.echo("\n".join(details(outcome)))
