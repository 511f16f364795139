"""What a calibration stores of each policy that was fitted, by the policy's name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

from msgspec import Meta, Struct


class Rung(Struct, frozen=True, forbid_unknown_fields=True):
    """One rung of a cascade: its answer is taken if its confidence reaches the threshold; the last rung's is 0.0."""

    model: Annotated[str, Meta(min_length=1)]
    threshold: Annotated[float, Meta(ge=0)]


class Cascades(Struct, frozen=True, forbid_unknown_fields=True):
    """The rungs of `cascade`, and of each other operating point, the most expensive first."""

    cascade: tuple[Rung, ...]
    front: tuple[tuple[Rung, ...], ...]


class Paths(Struct, frozen=True, forbid_unknown_fields=True):
    """The paths of a chain, the features in which neighbours are near, and how many of them are asked.

    price: of the most expensive model's cost, in shares of right answers. prices: of other operating points, the most
    expensive point first.
    """

    paths: tuple[tuple[Rung, ...], ...]
    features: Annotated[tuple[str, ...], Meta(min_length=1)]
    k: Annotated[int, Meta(ge=1)]
    price: Annotated[float, Meta(ge=0)]
    prices: tuple[Annotated[float, Meta(ge=0)], ...] = ()


class Priced(Struct, frozen=True, forbid_unknown_fields=True):
    """How much chance a millisecond, or a millijoule if that is the objective, must buy; 0 is the paper's argmax."""

    price: Annotated[float, Meta(ge=0)]


FACTS: Mapping[str, Any] = MappingProxyType(
    {
        "chain": Paths,
        "cascade": Cascades,
        "multiplexer": Priced,
    }
)
"""Policy -> the type of what is stored of it beside its arrays."""
