"""The rails that a tree of sensor files describes, and how the power of the board is shared among them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

TOTALS = {"VDD_IN", "POM_5V_IN", "VIN", "package-0"}
"""Rails through which all of the board's power goes."""

_TAKING = ("gone", "unbound")
_BELOW_THE_TOTAL = 0.9  # what the other rails carry together where one carries all: converters lose the rest
_UPSTREAM = {"VDD_MUX": 1.2}  # feeds the module and its carrier


@dataclass(frozen=True)
class Fault:
    """What a rail's files do instead of answering: see FAULTS. seconds: how long a read blocks, where that is it."""

    kind: str
    seconds: float = 1.0


FAULTS = {
    "eio": "each read fails with EIO: the bus or the chip does not answer",
    "enodata": "each read fails with ENODATA: the channel is switched off",
    "gone": "the files are not there (ENOENT); what is open already fails with ENODEV",
    "unbound": "the same, of all that the chip's folder has, and the folder",
    "empty": "each read returns an empty string",
    "block": "each read returns its value some seconds late",
}


@dataclass
class Rail:
    """One supply: its share of the board's power, and its fault, None while it is well."""

    name: str
    folder: str  # of its files, relative to the tree
    owns: Callable[[str], object]  # whether a file of that name, in that folder, is its own
    share: float = 0.0
    fault: Fault | None = None
    losses: int = 0  # how often its files were taken away: what was open then never reads again

    def suffer(self, fault: Fault | None) -> None:
        """Take a fault, or lose it: None."""
        self.fault = fault
        if fault is not None and fault.kind in _TAKING:
            self.losses += 1

    def hides(self, path: str) -> bool:
        """Whether that file or folder is not there because of the fault."""
        if self.fault is None or self.fault.kind not in _TAKING:
            return False
        if self.fault.kind == "unbound":
            return path == self.folder or path.startswith(self.folder + "/")
        folder, _, name = path.rpartition("/")
        return folder == self.folder and bool(self.owns(name))


def shares(names: Collection[str], given: Mapping[str, float] | None) -> dict[str, float]:
    """Return each rail's share of the board's power: as given, else 1 for a total and equal parts for the others."""
    if given is not None:
        unknown = set(given) - set(names)
        if unknown:
            raise ValueError(f"there is no rail {', '.join(sorted(unknown))}: there are {', '.join(sorted(names))}")
        return {name: given.get(name, 0.0) for name in names}
    others = [name for name in names if name not in TOTALS and name not in _UPSTREAM]
    carried = _BELOW_THE_TOTAL if TOTALS & set(names) else 1.0
    fixed = {**_UPSTREAM, **dict.fromkeys(TOTALS, 1.0)}
    return {name: fixed[name] if name in fixed else carried / len(others) for name in names}
