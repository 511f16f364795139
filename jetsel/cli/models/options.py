"""The options that several subcommands share, and how what is typed becomes numbers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from jetsel.base.names import RULE, is_plain, plain_name


def checked_name(text: str | None) -> str | None:
    """Return the name that a person gives to a model or family; raises BadParameter if it cannot be one."""
    if text is None or is_plain(text):
        return text
    made = plain_name(text)
    raise typer.BadParameter(f"{text!r} cannot be a name: {RULE}{f'; for example {made}' if made else ''}")


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
    typer.Option("--name", metavar="NAME", callback=checked_name, help="Name in requests (default: the source's)."),
]
FamilyName = Annotated[
    str | None,
    typer.Option(
        "--family",
        metavar="NAME",
        callback=checked_name,
        help="Family of the model (default: the labels file's or data set's name).",
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
