"""The options that several subcommands share, and how what is typed becomes numbers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

Folder = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Folder to add to (default: the first of [models] paths that you may write to, else "
        "`models` beside your calibrations).",
    ),
]
Name = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="Name used in requests (default: the source's name)."),
]
FamilyName = Annotated[
    str | None,
    typer.Option(
        "--family",
        metavar="NAME",
        help="Family of the model (default: the one with these labels, else the source's).",
    ),
]
Replace = Annotated[bool, typer.Option("--replace", help="Replace the family's model of this name.")]


MOST = 8.0  # in units of 0 to 1 no mean is over 1, and no deviation near this


def triple(text: str) -> tuple[float, float, float]:
    """Read `0.485,0.456,0.406`; raises BadParameter, also for levels of 0 to 255."""
    try:
        first, second, third = (float(part) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not three numbers with commas, as in 0.485,0.456,0.406") from None
    if max(first, second, third) > MOST:
        meant = ",".join(f"{number / 255:.3f}" for number in (first, second, third))
        raise typer.BadParameter(f"{text!r} uses levels of 0 to 255, not units of 0 to 1: {meant}")
    return first, second, third


def size(text: str) -> tuple[int, int]:
    """Read `224x192` as width and height in pixels; raises BadParameter."""
    found = re.fullmatch(r"([1-9]\d{0,4})x([1-9]\d{0,4})", text)
    if found is None:
        raise typer.BadParameter(f"{text!r} is not a width and height, as in 224x224")
    return int(found[1]), int(found[2])


def plain_name(text: str) -> str:
    """Return a name as manifests have them: small letters, digits, _ . - in the place of all else."""
    return re.sub(r"[^a-z0-9_.-]+", "-", text.lower()).strip("-_.")[:64]
