"""`jetsel edge triton-repository`: a family as NVIDIA Triton serves it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jetsel.base.errors import ConfigError
from jetsel.cli.options import ConfigFile


def triton_repository(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write; it must not exist.")],
    family: Annotated[
        str | None, typer.Option(metavar="NAME", help="Model family (default: the configured one).")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Model to write; repeatable (default: all of the family).")
    ] = None,
    python_backend: Annotated[bool, typer.Option("--python-backend", help="Use Triton's Python backend.")] = False,
    tensorrt: Annotated[
        bool, typer.Option("--tensorrt", help="Run the models with TensorRT on the edge server's GPU.")
    ] = False,
    config: ConfigFile = None,
) -> None:
    """Write a model repository for NVIDIA Triton, and print what to add to the device's jetsel.toml.

    Triton's ONNX Runtime backend runs the models unless an option says otherwise.
    """
    from jetsel.edge.triton_repository import write
    from jetsel.site.site import read_site

    if python_backend and tensorrt:
        raise ConfigError("--python-backend and --tensorrt: choose one")
    site = read_site(config)
    found = site.family(family)
    models = [site.zoo.find(name, found.name)[1] for name in model] if model else found.models
    mapped = write(out, found.labels, models, "python" if python_backend else "tensorrt" if tensorrt else "onnx")
    where = f'url = "http://HOST:8000" and family = "{found.name}"'
    typer.echo(f"# add to jetsel.toml, where [edge] has {where}:\n{mapped}", nl=False)
