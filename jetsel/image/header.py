"""What the parsers of the four formats have in common: the header they return and the errors they raise.

Each parser only looks at the bytes sent: it allocates nothing that grows with the picture that they claim to be, and
of an animation at most a copy of them.
"""

from __future__ import annotations

from typing import NamedTuple

from jetsel.errors import BadImageError

MAX_SEGMENTS = 65_536
"""How many segments or chunks of one file are read: real files have under 5,000, a hostile one costs 0.1 s at most."""


class Still(NamedTuple):
    """An animation's first picture as a file of its own, and where on the canvas it lies, in pixels."""

    data: bytes
    left: int
    top: int
    width: int
    height: int


class Header(NamedTuple):
    """What a whole file says of itself: stored size in pixels, and EXIF orientation (1 to 8) not yet applied to it.

    still: what is decoded in the file's place, None where that is the file itself.
    """

    width: int
    height: int
    orientation: int
    still: Still | None = None


def truncated(kind: str, where: str) -> BadImageError:
    """The error for a file that ends too early."""
    return BadImageError(f"the {kind} is truncated: it ends {where}; send the whole file")


def damaged(kind: str, why: str) -> BadImageError:
    """The error for a file that contradicts its own format."""
    return BadImageError(f"the {kind} is damaged: {why}; save or send it again")
