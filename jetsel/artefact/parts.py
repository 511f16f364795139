"""What a calibration stores of each policy that was fitted, by the policy's name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

from msgspec import Meta, Struct

from jetsel.premodel import Soundness


class Rung(Struct, frozen=True, forbid_unknown_fields=True):
    """One rung of a cascade: its answer is taken if its confidence reaches the threshold; the last rung's is 0.0."""

    model: Annotated[str, Meta(min_length=1)]
    threshold: Annotated[float, Meta(ge=0)]


class Links(Struct, frozen=True, forbid_unknown_fields=True):
    """The chain's models in the order of Algorithm 1, and what its distances say."""

    models: tuple[str, ...]
    soundness: Soundness = Soundness()


class Priced(Struct, frozen=True, forbid_unknown_fields=True):
    """How much chance a millisecond, or a millijoule if that is the objective, must buy; 0 is the paper's argmax."""

    price: Annotated[float, Meta(ge=0)]


FACTS: Mapping[str, Any] = MappingProxyType(
    {
        "chain": Links,
        "cascade": tuple[Rung, ...],
        "cascade-averaged": tuple[Rung, ...],
        "front": tuple[tuple[Rung, ...], ...],
        "multiplexer": Priced,
    }
)
"""Policy -> the type of what is stored of it beside its arrays."""
