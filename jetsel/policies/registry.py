"""The policies that a calibration may fit and a family offers. A new policy is one file and a line here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from jetsel.artefact.calibration import Calibration, contradiction
from jetsel.base.errors import did_you_mean
from jetsel.policies.cascade import CascadeKind
from jetsel.policies.chain import ChainKind
from jetsel.policies.kind import Kind
from jetsel.policies.multiplexer import NAME as MULTIPLEXER
from jetsel.policies.multiplexer import MultiplexerKind
from jetsel.policies.policy import Policy
from jetsel.policies.single import Single

KINDS: tuple[Kind, ...] = (
    ChainKind(),
    CascadeKind(),
    MultiplexerKind(),
)
"""Every kind of policy, in the order of lists and reports."""

KIND: Mapping[str, Kind] = MappingProxyType({kind.name: kind for kind in KINDS})
ON_REQUEST = frozenset({MULTIPLEXER})
"""Names of kinds that are fitted only on request, because fitting takes long."""


def kinds_with(names: Iterable[str]) -> tuple[Kind, ...]:
    """Return the kinds of policy that are always fitted, and those of ON_REQUEST with these names."""
    skipped = ON_REQUEST - set(names)
    return tuple(kind for kind in KINDS if kind.name not in skipped)


USUAL = kinds_with(())


def no_such(name: str, offered: Iterable[str]) -> str:
    """Return the message for an unknown policy `name`. offered: the names that exist."""
    names = list(offered)
    if name in ON_REQUEST:
        return f"no policy {name!r}; jetsel calibrate IMAGES --with {name} fits it"
    if name in KIND and not KIND.keys() & names:
        needed = f"no calibration, and policy {name!r} needs one: make it with jetsel calibrate IMAGES"
        return f"{needed}; without one it has {', '.join(names)}"
    return f"no policy {name!r}{did_you_mean(name, names)}; it has {', '.join(names)}"


def catalogue(
    models: Sequence[str], calibration: Calibration | None, kinds: Iterable[Kind] = KINDS
) -> dict[str, Policy]:
    """Return every policy of a family by its name: `single:MODEL` for each model, and those of the calibration.

    models: cheapest first. calibration: None if the family has none. kinds: those to make; an experiment adds its own.
    Raises CalibrationError if a stored policy does not fit the calibration.
    """
    by_name: dict[str, Policy] = {f"single:{model}": Single(model) for model in models}
    for kind in kinds:
        if calibration is not None and kind.name in calibration.parts:
            try:
                by_name |= kind.make(calibration.parts[kind.name], calibration)
            except (ValueError, TypeError, LookupError) as fault:
                raise contradiction(f"{kind.name}: {fault}") from fault
    return by_name
