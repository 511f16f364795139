"""What the commands of the fleet's manager share: options, the repository, and what devices have told."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jetsel.base.errors import ConfigError, RepositoryError, pip_install

if TYPE_CHECKING:
    from jetsel.addons.fleet.manager.planning import Planner, Proposal
    from jetsel.addons.fleet.manager.status import DeviceStatus

Days = Annotated[float, typer.Option(min=0.01, help="Days of reports to use, back from a device's newest report.")]
Periods = Annotated[float, typer.Option(min=1, help="Number of missed reports after which a device counts as faulty.")]
DeadlineMs = Annotated[
    float | None, typer.Option(min=0, help="Deadline in ms for devices that report none: later answers count as wrong.")
]
Families = Annotated[
    list[str],
    typer.Option(
        "--family",
        metavar="NAME",
        help="Family that devices should hold; repeatable (default: those that each device has, or all if none).",
    ),
]
Gain = Annotated[
    float, typer.Option(min=0, max=1, help="Minimum accuracy gain, as a share, that justifies a new plan.")
]


class OpenedFleet:
    """A repository and its devices. skipped: why uploads were not taken up, by their names."""

    def __init__(self, url: str, trusted: Collection[str], days: float = 7.0) -> None:
        """Take up what devices have told. Raises ConfigError if a library is missing, and RepositoryError."""
        check_libraries()
        from jetsel.addons.fleet.manager.devices import read_devices
        from jetsel.addons.fleet.manager.metadata import Metadata
        from jetsel.addons.fleet.storage import Storage

        self.storage, self.trusted = Storage(url), trusted
        table = Metadata(self.storage)
        self.skipped = table.gather()
        self.devices = read_devices(table, days)

    def statuses(self, periods: float) -> list[DeviceStatus]:
        """How every device stands."""
        from jetsel.addons.fleet.documents import PLANS, plan_path
        from jetsel.addons.fleet.manager.planning import read_plans
        from jetsel.addons.fleet.manager.status import Written, statuses

        try:
            now_s = self.storage.now_s()
        except RepositoryError:  # this user may only read there: ages are by this machine's clock
            now_s = time.time()
        written_s = {one.name: one.modified_s for one in self.storage.stored(PLANS)}
        plans = {
            name: Written(plan, written_s.get(plan_path(name), now_s))
            for name, plan in read_plans(self.storage, self.trusted).items()
        }
        return statuses(self.devices, plans, now_s, periods)

    def planner(self, deadline_ms: float | None, gain: float) -> Planner:
        """What plans these devices."""
        from jetsel.addons.fleet.manager.planning import Planner

        return Planner(self.storage, self.trusted, deadline_ms=deadline_ms, gain=gain)

    def proposals(self, planner: Planner, families: Collection[str]) -> list[Proposal]:
        """What is proposed for every device."""
        return [planner.propose(name, device, families) for name, device in self.devices.items()]


def check_libraries() -> None:
    """Raise ConfigError if a library of the manager's is missing."""
    for name in ("duckdb", "scipy"):
        if importlib.util.find_spec(name) is None:
            raise ConfigError(f"jetsel fleet needs {name}: {pip_install('fleet')}")


def printable(text: str) -> str:
    """Return what a device told as one line that moves no cursor."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def opened(url: str, trust: Collection[Path], days: float = 7.0) -> OpenedFleet:
    """Open a repository that these public keys may have signed."""
    from jetsel.addons.fleet.signing import read_key

    return OpenedFleet(url, [read_key(path) for path in trust], days)
