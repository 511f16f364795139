"""The policies that a calibration may fit: a new one is one file and one line here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from jetsel.errors import did_you_mean
from jetsel.policies.cascade import CascadeKind
from jetsel.policies.chain import ChainKind, PaperChainKind
from jetsel.policies.embedding import EmbeddingKind
from jetsel.policies.kind import Kind
from jetsel.policies.multiplexer import MultiplexerKind

KINDS: tuple[Kind, ...] = (
    ChainKind(),
    PaperChainKind(),
    CascadeKind("cascade", averaged=False),
    CascadeKind("cascade-averaged", averaged=True),
    EmbeddingKind(),
    MultiplexerKind(),
)
"""In the order in which they are listed and reported."""

KIND: Mapping[str, Kind] = MappingProxyType({kind.name: kind for kind in KINDS})

GONE: Mapping[str, str] = MappingProxyType(
    {
        "chain-right": "chain",
        "cascade-skipping": "cascade",
        "boosted": "cascade",
        "multiplexer-ensemble": "multiplexer",
        "multiplexer-cascade": "cascade",
    }
)
"""Policies that earlier versions had, and which of today's takes their place."""


def no_such(name: str, offered: Iterable[str]) -> str:
    """Say that there is no policy of this name, which there are, and what to name instead of one that went."""
    known = list(offered)
    if name in KIND and not KIND.keys() & known:
        needed = f"no calibration, which policy {name!r} needs: make one with jetsel calibrate PHOTOS"
        return f"{needed}; without one it has {', '.join(known)}"
    instead = f" any more (use {GONE[name]})" if name in GONE else ""
    return f"no policy {name!r}{instead}{did_you_mean(name, known)}; it has {', '.join(known)}"
