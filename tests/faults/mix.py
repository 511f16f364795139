"""The requests of a soak: valid, invalid, huge and late ones, each with the outcomes that are right for it."""

import random
from dataclasses import dataclass

from tests.system.daemons import drawn, encoded
from tests.unit.image.files import png

REFUSALS_AT_ANY_TIME = frozenset({"busy", "over-limit"})


@dataclass(frozen=True)
class Kind:
    """One kind of request. head: JSON with %d where its number goes, none where its id cannot be read.

    outcomes: "ok" or error codes, any of which is right.
    """

    name: str
    weight: float
    head: bytes
    frames: tuple[bytes, ...]
    outcomes: frozenset[str]

    @property
    def has_id(self) -> bool:
        """Whether the daemon can tell whose request it is."""
        return b"%d" in self.head


def mix() -> list[Kind]:
    """Return the kinds of requests, some of which are rare."""
    valid = [
        _kind(f"photograph {seed}, {model}", 20, f'"model":"{model}"', encoded(drawn(seed)))
        for seed, model in enumerate(("xs", "xs", "s", "xs"))
    ]
    small = encoded(drawn(9), ".png")
    return [
        *valid,
        _kind("cascade", 2, '"policy":"cascade"', encoded(drawn(5))),
        _kind("explained", 2, '"model":"xs","explain":true,"top_k":100', small),
        _kind("a deadline that is hardly met", 2, '"model":"s","deadline_ms":3.0', small, "ok", "deadline"),
        _kind("status", 1, "", kind="status"),
        _kind("no such kind", 1, "", outcome="unknown-kind", kind="dance"),
        _kind("a status with an image", 1, "", small, "bad-request", kind="status"),
        _kind("no JSON", 2, "", small, "bad-request", head=b"\xff{no json"),
        _kind("no such field", 2, '"modle":"xs"', small, "bad-request"),
        _kind("another version", 1, "", small, "unsupported-version", version=2),
        _kind("no image", 1, "", outcome="bad-request"),
        _kind("no such model", 2, '"model":"giant"', small, "unknown-model"),
        _kind("half a JPEG", 3, '"model":"xs"', encoded(drawn(6))[:-400], "bad-image"),
        _kind("noise", 2, '"model":"xs"', random.Random(0).randbytes(2000), "bad-image"),
        _kind("a bomb", 1, '"model":"xs"', png(100_000, 100_000, 8, 2, b""), "image-too-large"),
        _kind("12 megapixels", 0.2, '"model":"xs"', encoded(drawn(7, 3000, 4000))),
        _kind("3 MB of PNG", 0.2, '"model":"xs"', encoded(drawn(8, 1000, 1000), ".png")),
        _kind("past the limit in bytes", 0.02, '"model":"xs"', bytes(16_030_000), "image-too-large"),
    ]


def _kind(
    name: str,
    weight: float,
    fields: str,
    image: bytes | None = None,
    outcome: str = "ok",
    *more: str,
    kind: str = "classify",
    version: int = 1,
    head: bytes | None = None,
) -> Kind:
    rest = f",{fields}" if fields else ""
    written = head or f'{{"v":{version},"type":"{kind}","id":"%d"{rest}}}'.encode()
    frames = () if image is None else (image,)
    return Kind(name, weight, written, frames, REFUSALS_AT_ANY_TIME | {outcome, *more})
