"""The photographs that an engine is compared on: a folder's, or what jetsel draws and scikit-image ships."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from jetsel.base.errors import BadImageError, ImageTooLargeError
from jetsel.base.names import LeftOut, count_reasons
from jetsel.calibrate.listing import images_below, left_out_lines

if TYPE_CHECKING:
    from jetsel.image import Limits, Photograph


class BuiltInPhotographs:
    """What jetsel draws, and scikit-image's photographs if that is installed."""

    def __init__(self, limits: Limits, decode_px: int) -> None:
        from jetsel.cli.demo import photographs
        from jetsel.cli.drawn import pictures

        self._drawn = list(pictures().values())
        self._installed = [path for path in photographs().values() if isinstance(path, Path)]
        self._limits, self._decode_px = limits, decode_px
        both = f" and {len(self._installed)} images of scikit-image" if self._installed else ""
        self.source = f"{len(self._drawn)} images drawn by jetsel{both}"

    def __len__(self) -> int:
        return len(self._drawn) + len(self._installed)

    def __iter__(self) -> Iterator[Photograph]:
        from jetsel.image import Photograph, decode, read_file

        for bgr in self._drawn:
            yield Photograph(bgr, bgr.shape[1], bgr.shape[0])
        for path in self._installed:
            yield decode(read_file(path, self._limits), self._limits, self._decode_px)


class PhotographFolder:
    """The photographs of a folder, at any depth; if there are more than `most`, some of all parts of it."""

    def __init__(self, folder: Path, most: int, limits: Limits, decode_px: int) -> None:
        """Decode each once; raises BadImageError if the folder has none, or cannot be read."""
        self._limits, self._decode_px = limits, decode_px
        listed = list(images_below(folder))
        paths = [path for path in listed if isinstance(path, Path)]
        taken = [paths[number * len(paths) // most] for number in range(most)] if len(paths) > most else paths
        read = [self._readable(path) for path in taken]
        self._paths = [path for path in read if isinstance(path, Path)]
        left_out = [one for one in (*listed, *read) if isinstance(one, LeftOut)]
        if not self._paths:
            what = f"{folder}: no images there; name a folder with JPEG, PNG or WebP files"
            raise BadImageError("; ".join((what, *left_out_lines(left_out))))
        of = f" of {len(paths)}" if len(paths) > most else ""
        kinds = [f"{count} {kind}" for kind, count in count_reasons(one.reason for one in left_out).items()]
        self.source = f"{len(self._paths)}{of} images of {folder}" + ", left out: " * bool(kinds) + ", ".join(kinds)

    def __len__(self) -> int:
        return len(self._paths)

    def __iter__(self) -> Iterator[Photograph]:
        for path in self._paths:
            try:
                yield self._decoded(path)
            except OSError as error:  # noqa: PERF203  # decoding takes a thousand times as long
                raise BadImageError(f"{path}: cannot be read any more: {error.strerror}; put it back") from None

    def _readable(self, path: Path) -> Path | LeftOut:
        try:
            self._decoded(path)
        except (OSError, BadImageError, ImageTooLargeError) as error:
            return LeftOut(path, f"unreadable: {error}")
        return path

    def _decoded(self, path: Path) -> Photograph:
        from jetsel.image import decode, read_file

        return decode(read_file(path, self._limits), self._limits, self._decode_px)
