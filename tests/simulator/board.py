"""A board: the channels of its tree, wired to a power source through chips and their drivers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.simulator import chips, texts
from tests.simulator.chips import Channel, Energy, Ina238, Ina3221
from tests.simulator.drivers import Driver, Free, Waits
from tests.simulator.rails import Fault, Rail, shares
from tests.simulator.rapl import Counter
from tests.simulator.scanning import Found, scan
from tests.simulator.setup import Setup
from tests.simulator.texts import Text

_TEXTS: dict[str, Callable[[Channel], dict[str, Text]]] = {
    "jetpack4": texts.jetpack4,
    "hwmon": texts.hwmon,
    "ina238": texts.ina238,
}


class Board:
    """rails: by name. live: the files that have a live value, each with its rail and its driver, by path."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._tree = Path(setup.tree)
        self.source = setup.power.source()
        found = scan(self._tree)
        if not found:
            raise ValueError(f"there is no sensor in {setup.tree}: name the folder that has bus/ or class/ in it")
        share = shares([one.label for one in found], setup.shares)
        self.rails = {one.label: Rail(one.label, one.folder, one.owns, share[one.label]) for one in found}
        self.live: dict[str, tuple[Rail, Driver, Text]] = {}
        for folder in dict.fromkeys(one.folder for one in found):
            self._wire(folder, [one for one in found if one.folder == folder])

    def energy_j(self, names: list[str] | None, at_ns: int) -> float:
        """Return the true energy of some rails, None: of the board, from the beginning to `at_ns`."""
        share = 1.0 if names is None else sum(self.rails[name].share for name in names)
        return share * self.source.energy_j(at_ns - self._setup.begin_ns)

    def struck(self, names: list[str], kind: str | None) -> list[Rail]:
        """Return the rails that get, or lose, a fault that is given to some: an unbound driver takes its whole chip."""
        named = [self.rails[name] for name in names]
        whole = {
            rail.folder for rail in named if "unbound" in (kind, rail.fault.kind if rail.fault is not None else None)
        }
        return [rail for rail in self.rails.values() if rail in named or rail.folder in whole]

    def _wire(self, folder: str, found: list[Found]) -> None:
        """One chip."""
        driver = self._driver(found[0].kind)
        channels = []
        for one in found:
            rail = self.rails[one.label]
            rail.suffer(None if one.enabled else Fault("enodata"))
            energy = self._energy_of(rail)
            said: dict[str, Text]
            if one.kind == "rapl":
                said = {"energy": self._counter(folder, energy).microjoules}
            else:
                channels.append(self._channel(one, energy))
                said = _TEXTS[one.kind](channels[-1])
            for path, role in one.files.items():
                self.live[path] = (rail, driver, said[role])
        if found[0].kind == "hwmon" and len({one.shunt_ohm for one in found}) == 1:
            for name, text in texts.summed(channels).items():
                self.live[f"{folder}/{name}"] = (self.rails[found[0].label], driver, text)

    def _energy_of(self, rail: Rail) -> Energy:
        share, source, begin_ns = rail.share, self.source, self._setup.begin_ns
        return lambda at_ns: share * source.energy_j(at_ns - begin_ns)

    def _ina3221(self) -> Ina3221:
        return Ina3221() if self._setup.chip is None else Ina3221(self._setup.chip)

    def _driver(self, kind: str) -> Driver:
        transfer_ns = round(self._setup.transfer_us * 1e3)
        waiting = {"auto": ("hwmon",), "waits": ("hwmon", "jetpack4"), "free": ()}.get(self._setup.driver)
        if waiting is None:
            raise ValueError(f'there is no driver {self._setup.driver}: there are "auto", "waits" and "free"')
        if kind in waiting:
            return Waits(self._setup.begin_ns, self._ina3221().schedule, transfer_ns)
        return Free(transfer_ns)

    def _counter(self, folder: str, energy: Energy) -> Counter:
        first, most = (int((self._tree / folder / name).read_text()) for name in ("energy_uj", "max_energy_range_uj"))
        return Counter(energy, self._setup.begin_ns, first, most)

    def _channel(self, found: Found, energy: Energy) -> Channel:
        supply = chips.Supply(
            energy_j=energy,
            nominal_v=found.nominal_v,
            sag_ohm=self._setup.sag_mohm / 1e3,
            shunt_ohm=self._setup.shunts_mohm.get(found.label, found.shunt_ohm * 1e3) / 1e3,
        )
        if found.kind == "ina238":
            one = Ina238() if self._setup.chip is None else Ina238(self._setup.chip)
            return Channel(supply, self._setup.begin_ns, one.schedule, *one.slots(), one.steps)
        three = self._ina3221()
        return Channel(supply, self._setup.begin_ns, three.schedule, *three.slots(found.channel), three.steps)
