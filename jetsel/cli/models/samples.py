"""The images on which an engine is compared with ONNX Runtime: those of a folder, or drawn ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jetsel.base.errors import BadImageError, ImageTooLargeError
from jetsel.base.names import LeftOut, count_reasons
from jetsel.calibrate.listing import images_below, left_out_lines
from jetsel.cli.demo import photographs
from jetsel.cli.drawn import pictures
from jetsel.image import Limits, Photograph, decode, read_file


class ComparedImages:
    """Images to compare an engine on: arrays (height, width, 3) BGR, and files. source: a description of them."""

    def __init__(
        self, source: str, drawn: Sequence[NDArray[np.uint8]], paths: Sequence[Path], limits: Limits, decode_px: int
    ) -> None:
        self.source = source
        self._drawn, self._paths, self._limits, self._decode_px = drawn, paths, limits, decode_px

    def __len__(self) -> int:
        return len(self._drawn) + len(self._paths)

    def __iter__(self) -> Iterator[Photograph]:
        for bgr in self._drawn:
            yield Photograph(bgr, bgr.shape[1], bgr.shape[0])
        for path in self._paths:
            try:
                yield decode(read_file(path, self._limits), self._limits, self._decode_px)
            except OSError as error:  # noqa: PERF203  # decoding takes a thousand times longer
                raise BadImageError(f"{path}: cannot be read any more: {error.strerror}; put it back") from None


def built_in_images(limits: Limits, decode_px: int) -> ComparedImages:
    """Return the images that jetsel draws, and those of scikit-image if it is installed."""
    drawn = list(pictures().values())
    installed = [path for path in photographs().values() if isinstance(path, Path)]
    others = f" and {len(installed)} images of scikit-image" if installed else ""
    return ComparedImages(f"{len(drawn)} images drawn by jetsel{others}", drawn, installed, limits, decode_px)


def images_in(folder: Path, most: int, limits: Limits, decode_px: int) -> ComparedImages:
    """Return the images of a folder, at any depth; if there are more than `most`, every nth so that `most` remain.

    Each is decoded once to check it. Raises BadImageError if the folder has none or cannot be read.
    """
    listed = list(images_below(folder))
    paths = [path for path in listed if isinstance(path, Path)]
    readable, left_out = [], [entry for entry in listed if isinstance(entry, LeftOut)]
    for path in (paths[number * len(paths) // most] for number in range(most)) if len(paths) > most else paths:
        try:
            decode(read_file(path, limits), limits, decode_px)
        except (OSError, BadImageError, ImageTooLargeError) as error:  # noqa: PERF203  # as above
            left_out.append(LeftOut(path, f"unreadable: {error}"))
        else:
            readable.append(path)
    if not readable:
        fault = f"{folder}: no images there; name a folder with JPEG, PNG or WebP files"
        raise BadImageError("; ".join((fault, *left_out_lines(left_out))))
    total = f" of {len(paths)}" if len(paths) > most else ""
    kinds = ", ".join(f"{count} {kind}" for kind, count in count_reasons(one.reason for one in left_out).items())
    source = f"{len(readable)}{total} images of {folder}{kinds and f', left out: {kinds}'}"
    return ComparedImages(source, (), readable, limits, decode_px)
