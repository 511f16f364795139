"""`jetsel models set`: correct a model's preprocessing."""

from __future__ import annotations

from typing import Annotated

import typer

from jetsel.cli.models.placed import Channels, Interpolation, Like, Mean, Resize, ResizePx, Std, parse_triple
from jetsel.cli.options import ConfigFile, Json, emit


def set_input(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The model, see jetsel models list.")],
    family: Annotated[
        str | None, typer.Option("--family", metavar="NAME", help="Family of NAME, if the name is ambiguous.")
    ] = None,
    like: Like = None,
    mean: Mean = None,
    std: Std = None,
    channels: Channels = None,
    resize: Resize = None,
    resize_px: ResizePx = None,
    interpolation: Interpolation = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Correct how a model's input images are prepared. Options that you do not give keep their values.

    Calibrations that used the model are set aside; until you run `jetsel calibrate`, the best unchanged model answers.
    """
    import msgspec

    from jetsel.site.site import read_site
    from jetsel.zoo.conventions import changed_values
    from jetsel.zoo.manifest import Preprocessing
    from jetsel.zoo.placing import rewrite_manifest

    all_options = {
        "mean": None if mean is None else parse_triple(mean),
        "std": None if std is None else parse_triple(std),
        "channels": channels,
        "resize": resize,
        "resize_px": resize_px,
        "interpolation": interpolation,
    }
    options = {key: value for key, value in all_options.items() if value is not None}
    if like is None and not options:
        raise typer.BadParameter("No change given. Use --like NAME, or --mean A,B,C --std A,B,C.")
    owner, model = read_site(config).zoo.find(name, family)
    source = ", ".join(["jetsel models set", *([] if like is None else [f"--like {like}"]), *options])
    manifest = rewrite_manifest(
        model, input=changed_values(model.manifest.input, like, options), preprocessing=Preprocessing(source=source)
    ).manifest
    spec = ", ".join(
        f"{key} {value}" for key, value in msgspec.to_builtins(manifest.input).items() if value is not None
    )
    emit(
        manifest,
        json,
        f"{name} of family {owner.name}: {spec}\nnote: calibrations that were made with it before are set aside: run "
        "`jetsel calibrate IMAGES`\nto use it in a running daemon: jetsel reload",
    )
