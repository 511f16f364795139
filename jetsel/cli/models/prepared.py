"""The options that say how images are prepared for a model, as `add` and `set` take them."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

Like = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Prepare images as torchvision, timm, ultralytics, keras or others do."),
]
Mean = Annotated[str | None, typer.Option(metavar="A,B,C", help="Mean of each channel, in units of 0 to 1.")]
Std = Annotated[
    str | None, typer.Option(metavar="A,B,C", help="Standard deviation of each channel, in units of 0 to 1.")
]
Resize = Annotated[
    Literal["shorter-side", "stretch"] | None,
    typer.Option(help="Scale both sides alike and crop, or stretch to the input."),
]
ResizePx = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Shorter side after scaling, before the crop (default: the input's)."),
]
Interpolation = Annotated[
    Literal["area", "bilinear", "bicubic", "antialiased-bilinear", "antialiased-bicubic"] | None,
    typer.Option(help="Interpolation used in training. The antialiased kinds are those of Pillow and torchvision."),
]
Channels = Annotated[Literal["rgb", "bgr"] | None, typer.Option(help="Order of the input's channels.")]
