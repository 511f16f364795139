"""`jetsel edge measure`: how often the edge's models are right, on whole photographs and on reduced ones."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from jetsel.base.errors import ConfigError
from jetsel.cli.calibrate import LabelMap, Photos
from jetsel.cli.options import ConfigFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jetsel.calibrate.record.photographs import Labelled
    from jetsel.edge.runner import Edge
    from jetsel.image import Limits

AT_ONCE = 8
PATIENCE_MS = 60_000.0


def measure(
    photos: Photos,
    px: Annotated[
        list[int] | None,
        typer.Option(min=16, max=9999, help="Additional image size to measure: shorter side in pixels; repeatable."),
    ] = None,
    label_map: LabelMap = None,
    config: ConfigFile = None,
) -> None:
    """Measure the accuracy of each model of the edge server on labelled images, and print it as configuration.

    `accuracy` is for whole images, `accuracy_at_px` for images reduced to a shorter side, which the daemon sends if the
    deadline leaves no time for the whole image.
    """
    from jetsel.calibrate.record.photographs import find
    from jetsel.cli.edge.opened import check_models, opened

    with opened(config) as (site, family, edge):
        found, limits = find(photos, family.labels, label_map, need_labels=True).photographs, site.limits
        check_models(edge, *site.config.edge.models)
        for name, model in site.config.edge.models.items():
            if model.input != "encoded":
                raise ConfigError(
                    f"edge.models.{name}: it takes tensors, so it is as accurate as the local model; do not measure it"
                )
            asking = _Asking(edge, name, limits, family.decode_px)
            typer.echo(f'[edge.models.{name}]\nremote = "{model.remote}"\naccuracy = {asking.tell(found, None)}')
            for side_px in px or ():
                typer.echo(f"accuracy_at_px.{side_px} = {asking.tell(found, side_px)}")


@dataclass(frozen=True)
class _Asking:
    edge: Edge
    model: str
    limits: Limits
    decode_px: int

    def tell(self, photographs: Sequence[Labelled], side_px: int | None) -> str:
        """Return the share that it is right on, and of how many photographs of what size that is."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            said = list(pool.map(lambda one: self._ask(one, side_px), photographs))
        right, sent_bytes = (sum(column) for column in zip(*said, strict=True))
        return f"{right / len(said):.4f}  # of {len(said)} images, {sent_bytes / len(said) / 1e3:.1f} kB each"

    def _ask(self, one: Labelled, side_px: int | None) -> tuple[bool, int]:
        from jetsel.cli.edge.opened import ask
        from jetsel.edge.runner import EdgeAnswer, Photograph
        from jetsel.image import decode, jpeg, read_file

        content = read_file(one.path, self.limits)
        if side_px is not None:
            content = jpeg(decode(content, self.limits, self.decode_px).bgr, side_px)
        told = ask(self.edge, self.model, Photograph(content), PATIENCE_MS)
        if not isinstance(told, EdgeAnswer):
            raise told
        return int(told.values.argmax()) == one.class_number, told.result.sent_bytes
