"""`jetsel train-multiplexer`: a small network that sees a photograph first and says which model to run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from jetsel.cli.calibrate import LabelMap
from jetsel.cli.options import ConfigFile, Json, print_json

if TYPE_CHECKING:
    from rich.table import Table

    from jetsel.cli.multiplexing import Found


def train_multiplexer(
    family: Annotated[str, typer.Argument(metavar="FAMILY", help="The family whose models it is to choose from.")],
    photos: Annotated[
        Path,
        typer.Argument(
            metavar="PHOTOS",
            exists=True,
            help="A folder with a folder of photographs per class, or a CSV of path,label: those to calibrate on.",
        ),
    ],
    models: Annotated[
        list[str] | None,
        typer.Option("--model", metavar="NAME", help="One to choose from; repeatable. Left out: all that are served."),
    ] = None,
    loss: Annotated[
        Literal["right", "ensemble"],
        typer.Option(help="What it learns: whether each model is right, or the paper's weights of their answers."),
    ] = "right",
    costs: Annotated[
        Literal["ms", "operations", "mj"], typer.Option(help="Of the models, by which --loss ensemble divides weights.")
    ] = "ms",
    stem: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Whose first layers it has. Left out: the cheapest model's.")
    ] = None,
    joint: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            exists=True,
            help="Train copies of the models together first, by the contrastive loss, on these labelled photographs; "
            "they are added as NAME-joint.",
        ),
    ] = None,
    contrast: Annotated[
        float, typer.Option(min=0, metavar="WEIGHT", help="Of the contrastive loss, with --joint; 0: without it.")
    ] = 0.3,
    epochs: Annotated[int, typer.Option(min=1, help="With --joint.")] = 12,
    minutes: Annotated[float, typer.Option(min=0.1, help="Of training at most, with --joint.")] = 40.0,
    seed: Annotated[int, typer.Option(min=0, help="The same seed trains the same.")] = 2020,
    label_map: LabelMap = None,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    """Train a multiplexer on photographs, and put it beside the models of the family.

    The models stay as they are: what they said of the photographs, which is recorded as by jetsel calibrate, is what it
    learns. Nothing is served by it until jetsel calibrate has compared its policies. The same command goes on where it
    was interrupted. Needs pip install 'jetsel[export]'.
    """
    from jetsel.cli import family_calibrations
    from jetsel.cli.joint_training import Jointly
    from jetsel.cli.multiplexing import Asked, train
    from jetsel.cli.progress import Output
    from jetsel.cli.terminal import console

    jointly = None if joint is None else Jointly(joint, contrast, epochs, 60 * minutes, seed)
    asked = Asked(photos, label_map, tuple(models or ()), loss, costs, stem, jointly, seed)
    with Output(quiet=json) as output:
        found = train(lambda: family_calibrations.find(config, family), asked, output)
    if json:
        manifest = found.multiplexer.manifest
        cuts = [
            {"share": one.cut.share, "loss": float(one.each.mean()), "area": area}
            for one, area in zip(found.made.tried, found.areas, strict=True)
        ]
        print_json(
            {
                "name": manifest.name,
                "directory": str(found.multiplexer.directory),
                "models": manifest.multiplexes and manifest.multiplexes.models,
                "photographs": found.photographs,
                "cut": found.made.cut.share,
                "latency_ms": manifest.cost_ms,
                "cuts": cuts,
                "joint": found.joint,
            }
        )
        return
    out = console()
    out.print(_cuts(found))
    out.print("\n".join(_lines(found, family, photos)), soft_wrap=True)


def _cuts(found: Found) -> Table:
    from jetsel.cli.terminal import table

    shown = table(f">of {found.cheapest}", ">loss", f">tells where {found.cheapest} is right", "")
    for one, area in zip(found.made.tried, found.areas, strict=True):
        mark = "taken" if one.cut == found.made.cut else ""
        shown.add_row(
            f"{100 * one.cut.share:.0f} %", f"{one.each.mean():.4f}", "-" if area is None else f"{area:.3f}", mark
        )
    return shown


def _lines(found: Found, family: str, photos: Path) -> list[str]:
    manifest = found.multiplexer.manifest
    models = manifest.multiplexes.models if manifest.multiplexes is not None else ()
    told = f"{found.cheapest} is right on all of them, or on none: nothing is to be told apart"
    if found.own_area is not None:
        told = f"0.5 is guessing; its own confidence, once it ran: {found.own_area:.3f}"
    lines = [
        f"areas under the curve, on photographs held out ({found.photographs:,} in all); {told}",
        f"added {manifest.name} to family {family}: it chooses among {', '.join(models)}, and takes "
        f"{manifest.cost_ms:.2f} ms where {found.cheapest} takes {found.cheapest_ms:.2f}",
    ]
    lines += [f"added too: {', '.join(found.joint)}"] if found.joint else []
    return [*lines, f"next: jetsel calibrate {photos} --family {family}, which says whether it pays; and jetsel reload"]
