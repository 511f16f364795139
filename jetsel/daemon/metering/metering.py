"""The meter's life in the daemon: its sampler, what the board is compared with, the books and the budget."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping

from jetsel.config import Power
from jetsel.daemon.family import ServedFamily
from jetsel.daemon.metering.accounts import Accounts
from jetsel.daemon.metering.at_rest import AtRest
from jetsel.daemon.metering.bill import Bill, Priced, estimated, price
from jetsel.daemon.metering.budget import Budget
from jetsel.daemon.metering.conditions import Conditions
from jetsel.daemon.metering.made_under import restored
from jetsel.daemon.metering.watching import Watcher
from jetsel.events import event
from jetsel.policies import Policy
from jetsel.policies.capped import capped
from jetsel.power.finding import Found, find
from jetsel.power.idle import Idle
from jetsel.power.ledger import Ledger
from jetsel.power.machine import Facts, Machine
from jetsel.power.place import named
from jetsel.power.sampling.sampler import Sampler
from jetsel.power.sharing import stretches
from jetsel.runtime import Flight
from jetsel.wire import Classify

log = logging.getLogger("jetsel.power")

LOOK_S = 1.0  # between two looks at the board
ENTER_S = 0.25  # between two entries in the books, so that no request does the work of many
JTOP_WAIT_S = 2.0  # at the start, for the first answer of jetson-stats

IDLE = "idle power"


class Metering:
    """Owned by the daemon for its life; a reload changes the budget, and reads the idle power again."""

    def __init__(self, power: Power) -> None:
        """Start the sampler, unless [power] says that there is no sensor."""
        self.power = power
        self.machine = Machine(power.sysfs, power.jtop)
        self.facts = self.machine.facts(JTOP_WAIT_S if power.jtop else 0.0)
        self.conditions = Conditions()
        self.budget = Budget(power.budget_w, 0)
        self.served: Mapping[str, ServedFamily] = {}
        self._news = threading.Event()  # the sampler says other things than before
        self.sampler = None if power.sensor == "none" and power.replay is None else Sampler(power, self._news.set)
        self.ledger: Ledger | None = None
        self.accounts: Accounts | None = None
        self._at_rest: AtRest | None = None
        if self.sampler is not None:
            self.ledger = Ledger(self.sampler, None)
            self.accounts = Accounts(self.ledger)
            self._at_rest = AtRest(power, self.sampler, self.ledger)
        self._no_sampler: str | None = '[power] sensor is "none"'
        self._rails: tuple[str, ...] = ()  # of the total, as far as they were found
        self._board: str | None = None  # as idle power is kept under
        self._made_under: dict[str, Facts] = {}  # of the calibrations that tell, by how conditions name them
        self._counting = threading.Lock()
        self._under_way = 0
        self._period_ns = round(1e9 / power.rate_hz)
        self._seen_ns = time.monotonic_ns()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="power", daemon=True)

    def start(self) -> None:
        """Begin to look at the board once a second."""
        self._thread.start()

    def stop(self) -> None:
        """End the looking and the sampler."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()
        if self.sampler is not None:
            self.sampler.stop()
        self.machine.close()

    def serve(self, families: Mapping[str, ServedFamily], power: Power) -> None:
        """Meter these families from now on, under this configuration's budget."""
        self.served = families
        self.budget.most = max(len(family.models) for family in families.values()) - 1
        self.budget.limit_w = power.budget_w
        calibrated = {name: family.in_use.calibration for name, family in families.items()}
        made_under = {name: restored(made.machine) for name, made in calibrated.items() if made is not None}
        self._made_under = {calibration_of(name): facts for name, facts in made_under.items() if facts is not None}
        self._read_idle()
        if self.ledger is not None:
            for name, family in families.items():
                family.driver.observer = Watcher(self.ledger, name)

    @property
    def reason(self) -> str | None:
        """Why no power is read, None where it is."""
        return self._no_sampler if self.sampler is None else self.sampler.reason

    @property
    def idle(self) -> Idle | None:
        """The idle power that is deducted, None where none is known."""
        return None if self._at_rest is None else self._at_rest.idle

    @property
    def idle_reason(self) -> str | None:
        """Why no idle power is known, None where it is."""
        return None if self._at_rest is None else self._at_rest.reason

    @property
    def is_busy(self) -> bool:
        """Whether a request is metered now."""
        return self._under_way > 0

    # What a request needs.

    def open(self) -> Bill:
        """Return the bill of a request that begins; the sensor is read fast until it is closed."""
        if self.sampler is None or self.idle is None:
            return Bill(None)
        self.sampler.open()
        self._count(1)
        return Bill(self.ledger)

    def close(self, bill: Bill, family: str, policy: str | None, request: Classify) -> None:
        """Enter the bill of a request that is over. policy: what chose for its answer, None where it got none."""
        if bill.is_metered and self.sampler is not None and self.accounts is not None:
            self.sampler.shut()
            self._count(-1)
            self.accounts.over(family, policy, request.criterion, bill.lines)

    def price(self, bill: Bill, family: ServedFamily, policy: Policy, flight: Flight) -> Priced:
        """Return the energy of a request that is about to be answered: measured, else estimated, else unknown."""
        reason = self.reason
        why_not = self.idle_reason if reason is None else f"no meter: {reason}"
        measured = bill.measured(self._period_ns, why_not)
        if measured.energy_mj is not None:
            return price(measured, None)
        return price(measured, estimated(flight.ran, bool(policy.features), family.in_use.calibration))

    def out_of_conditions(self, family: str) -> list[str]:
        """Return how the board differs from what a family's energies and choices were measured under."""
        return self.conditions.of(IDLE, calibration_of(family))

    def within_budget(self, family: ServedFamily, policy: Policy, request: Classify) -> Policy:
        """Return the policy without what the budget leaves out; one that the request names is honoured as it is."""
        level, limit_w = self.budget.level, self.budget.limit_w
        if not level or limit_w is None or request.model is not None or request.policy is not None:
            return policy
        return capped(policy, list(family.models), level, f"to keep the power budget of {limit_w:g} W")

    # What is done beside the requests.

    def _watch(self) -> None:
        looked_s = 0.0
        while not self._stopped.wait(ENTER_S):
            if self.sampler is not None and self._news.is_set():
                self._news.clear()
                self._hear(self.sampler)
            if self.accounts is not None:
                self.accounts.enter()
            now_s = time.monotonic()
            if now_s - looked_s >= LOOK_S:
                looked_s = now_s
                self._look(now_s)

    def _hear(self, sampler: Sampler) -> None:
        """The sampler found another total: read its idle power. Give it up where this machine has no sensor at all.

        Where there is one that does not serve now, it stays, and looks again by itself.
        """
        if sampler.total_of:
            if sampler.total_of != self._rails:
                found = self._found()
                self._board, self._rails = named(found, self.facts).board, sampler.total_of
                self._read_idle()
        elif self.power.sensor == "auto" and self.power.replay is None:
            found = self._found()
            if not found.rails and not found.dropped:
                self._no_sampler, self.sampler = found.reason, None
                sampler.stop()

    def _found(self) -> Found:
        found = find(self.power)
        found.close()
        return found

    def _look(self, now_s: float) -> None:
        self.facts = self.machine.facts()
        if self._at_rest is not None and self._rails:
            self._at_rest.follow(self._board, self.facts.power_mode.value, self._rails)
        self.conditions.look(now_s, self.facts, self._measured())
        if self.sampler is None:
            return
        period_ms = self.sampler.report().update_period_ms
        self._period_ns = round(max(1e9 / self.power.rate_hz, (period_ms or 0.0) * 1e6))
        if self.budget.look(now_s, self._mean_w(self.sampler)):
            level, state = self.budget.level, self.budget.state
            told = event("power-budget", level=level, mean_w=self.budget.mean_w, limit_w=self.budget.limit_w)
            log.warning("power budget: level %d: %s", level, state, extra=told)

    def _measured(self) -> dict[str, Facts]:
        """The facts that each measurement in use was made under, as far as it tells."""
        idle = self.idle
        at_rest = {} if idle is None or idle.facts is None else {IDLE: idle.facts}
        return at_rest | self._made_under

    def _mean_w(self, sampler: Sampler) -> float | None:
        """Return the mean power since the last call, None where none was read."""
        begin_ns, end_ns = self._seen_ns, time.monotonic_ns()
        self._seen_ns = end_ns
        (stretch,) = stretches(sampler.samples(begin_ns, end_ns), [begin_ns, end_ns], _Whole())
        read_s = (end_ns - begin_ns) * 1e-9 - stretch.unmetered_s
        return stretch.energy_mj * 1e-3 / read_s if read_s > 1e-3 else None

    def _read_idle(self) -> None:
        """Read what `jetsel power calibrate` measured here in the power mode of now, once the rails are known."""
        if self._at_rest is not None and self._rails:
            self._at_rest.read(self._board, self.facts.power_mode.value, self._rails)

    def _count(self, more: int) -> None:
        with self._counting:
            self._under_way += more


class _Whole:
    """Nothing is deducted."""

    mean_w = 0.0
    half_width_w = 0.0


def calibration_of(family: str) -> str:
    """How conditions name a family's calibration."""
    return f"calibration of {family}"
