"""The options that several commands share, and functions that print results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from jetsel.base.errors import JetselError

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="Configuration file (default: $JETSEL_CONFIG, ~/.config/jetsel/jetsel.toml or "
        "/etc/jetsel/jetsel.toml, else built-in defaults).",
    ),
]
DaemonConfig = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", metavar="FILE", help="Configuration that names the daemon's address (default: none is read)."
    ),
]
Endpoint = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Address of the daemon, as ipc:///path/of/the.sock (default: $JETSEL_ENDPOINT, your own "
        "daemon's socket, or /run/jetsel/jetsel.sock).",
    ),
]


def served_models(incomplete: str) -> list[str]:
    """Return the running daemon's models whose names begin so, for completion in a shell; none if no daemon replies."""
    from jetsel.client import Client

    try:
        with Client(timeout_ms=500) as client:
            names = [model.name for family in client.status().families for model in family.models]
    except (JetselError, OSError):
        return []
    return [name for name in names if name.startswith(incomplete)]


OneModel = Annotated[str | None, typer.Option("--model", help="Run only this model.", autocompletion=served_models)]
FamilyName = Annotated[
    str | None, typer.Option("--family", metavar="NAME", help="Model family (default: the configured one).")
]
AskedFamily = Annotated[str | None, typer.Option("--family", help="Model family (default: the daemon's).")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of a table for people.")]
TimeoutMs = Annotated[float, typer.Option(min=1, help="Time limit of a call in ms, retries included.")]


def emit(result: Any, as_json: bool, show: Callable[[], object] | str) -> None:
    """Print a result as JSON if as_json, or else for people: the text `show`, or what the function `show` prints."""
    if as_json:
        print_json(result)
    elif isinstance(show, str):
        typer.echo(show)
    else:
        show()


def print_json(value: Any) -> None:
    """Print a value as one line of JSON, and flush it. value: what msgspec encodes, structs and dataclasses too."""
    import msgspec

    print(msgspec.json.encode(value).decode(), flush=True)
