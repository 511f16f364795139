"""Under which conditions a calibration was made: the facts that are compared, as it keeps and gives them back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from jetsel.power.machine import Clock, Fact, Facts, Known, Pinned, Throttling

_NOT_KEPT = "not kept with a calibration"


class _Kept(Struct, frozen=True):
    """The facts by which `differences` goes."""

    board: Fact
    l4t: Fact
    power_mode: Fact
    jetson_clocks: Pinned
    cores: Fact
    cpu_clocks: Known[list[Clock]]
    gpu_clocks: Known[list[Clock]]


def kept(facts: Facts) -> dict[str, Any]:
    """Return of these facts what a calibration keeps, as plain values."""
    compared = {name: getattr(facts, name) for name in _Kept.__struct_fields__}
    plain: dict[str, Any] = msgspec.to_builtins(_Kept(**compared))
    return plain


def restored(machine: Mapping[str, Any]) -> Facts | None:
    """Return the facts that a calibration keeps, None where it keeps none that can be understood."""
    if not machine:
        return None
    try:
        found = msgspec.convert(machine, _Kept)
    except msgspec.ValidationError:  # of another version of jetsel: as good as none
        return None
    return Facts(
        **msgspec.structs.asdict(found),
        jetpack=Fact(None, _NOT_KEPT),
        gpu_load=Known(None, _NOT_KEPT),
        temperatures_c=Known(None, _NOT_KEPT),
        throttling=Throttling(
            hot=Known(None, _NOT_KEPT),
            cooled=Known(None, _NOT_KEPT),
            over_current=Known(None, _NOT_KEPT),
            events=Known(None, _NOT_KEPT),
            held=Known(None, _NOT_KEPT),
        ),
        jtop=Fact(None, _NOT_KEPT),
    )
