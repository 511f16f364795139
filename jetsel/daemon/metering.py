"""Power in the daemon: sampler, idle power, the board's state, energy estimates, and the power budget."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Mapping
from functools import partial

from jetsel.base.config import Config, Power, power_folder
from jetsel.base.errors import CalibrationError
from jetsel.base.events import event
from jetsel.daemon.estimates import Estimates, estimated_mj
from jetsel.daemon.family import ServedFamily
from jetsel.daemon.pace import PowerBudget
from jetsel.policies import Policy
from jetsel.policies.requirements import Requirements
from jetsel.power.idle import IdlePower, load_idle
from jetsel.power.integration import EnergySum
from jetsel.power.machine import BoardFacts, Machine, differences, restore_facts, throttled
from jetsel.power.sampler import Sampler
from jetsel.runtime import RequestRun
from jetsel.wire import Answer

log = logging.getLogger("jetsel.power")

BOARD_INTERVAL_S = 1.0  # between two readings of the board's state
RAILS_EVERY_S = 1.0  # interval for single rails, which only `status` reads
JTOP_WAIT_S = 2.0  # at the start, for the first answer of jetson-stats
IDLE = "idle power"  # name of this measurement in `conditions`
NOT_AS_CALIBRATED = "the board's state differs from that at the calibration"


class Metering:
    """Measures power, and estimates the energy of answers. It lives as long as the daemon, over all reloads.

    facts: the board's state (power mode, clocks, temperatures), read once a second. conditions: whether it is the same
    as when idle power and calibrations were measured. idle: idle power of this board in its current power mode; None
    for the reason idle_reason. above_idle: energy above idle power since the start, summed while idle power is known
    and the board is in the state of that measurement.
    """

    def __init__(self, power: Power) -> None:
        """Start the sampler, unless power.sensor is "none"."""
        self.machine = Machine(power.sysfs, power.jtop)
        self.facts = self.machine.facts(JTOP_WAIT_S if power.jtop else 0.0)
        self.conditions = ConditionsWatch()
        self.budget = PowerBudget(power.budget_w)
        self.estimates = Estimates()
        self.idle: IdlePower | None = None
        self.idle_reason: str | None = "searching for power sensors"
        self.above_idle = EnergySum()
        self._power = power
        self._mj_per_kb: float | None = None  # energy of sending to the edge server, None if unknown
        self.sampler = None if power.sensor == "none" else Sampler(power, RAILS_EVERY_S)
        self._calibrated_facts: dict[str, BoardFacts] = {}  # state at each calibration, by its name in `conditions`
        self._summed_until_ns = time.monotonic_ns()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="power", daemon=True)

    def start(self) -> None:
        """Start the thread that reads the board once a second."""
        self._thread.start()

    def stop(self) -> None:
        """End that thread and the sampler."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()
        if self.sampler is not None:
            self.sampler.stop()
        self.machine.close()

    def set_families(self, families: Mapping[str, ServedFamily], config: Config) -> None:
        """Meter these families from now on, with this configuration's budget and energy of sending."""
        self._mj_per_kb = config.edge.mj_per_kb
        self.budget.set_limit(config.power.budget_w)
        for family in families.values():
            family.driver.shared.on_unused_result = partial(self.add_unused, family)
        calibrations = {name: family.in_use.calibration for name, family in families.items()}
        facts_of = {name: restore_facts(made.machine) for name, made in calibrations.items() if made is not None}
        self._calibrated_facts = {_calibration_of(name): facts for name, facts in facts_of.items() if facts is not None}

    @property
    def reason(self) -> str | None:
        """Why no power is measured, None if it is."""
        return '[power] sensor is "none"' if self.sampler is None else self.sampler.reason

    def estimate(
        self, family: ServedFamily, policy: Policy, run: RequestRun, differing: list[str]
    ) -> tuple[float | None, str | None]:
        """Return the calibrated energy of a request's runs in mJ and no reason, or None and why it is unknown.

        differing: how the board differs from its state at the calibration (`out_of_conditions`).
        """
        if differing:
            return None, f"{NOT_AS_CALIBRATED}: {'; '.join(differing)}"
        return estimated_mj(run.ran, bool(policy.features), family.in_use.calibration, self._mj_per_kb)

    def add_answer(self, answer: Answer, family: ServedFamily, policy: Policy) -> None:
        """Add the energy of an answer to the estimates, and to the power budget if its operating point was chosen.

        The budget uses the calibrated energy in every state of the board: the measured power already includes what the
        state changes.
        """
        calibration, uses_features = family.in_use.calibration, bool(policy.features)
        self.estimates.add(answer, uses_features, calibration)
        if answer.operating_point is not None:
            self.budget.spend(estimated_mj(answer.ran, uses_features, calibration, self._mj_per_kb)[0])

    def add_unused(self, family: ServedFamily, model: str) -> None:
        """Add the energy of a run on this device whose result was not needed any more."""
        calibration = None if self.out_of_conditions(family.name) else family.in_use.calibration
        if model in family.models:
            energy_mj = None if calibration is None else calibration.energy.mean_mj.get(model)
            self.estimates.add_unused(family.name, model, energy_mj)

    def out_of_conditions(self, family: str) -> list[str]:
        """Return in words how the board differs from its state when the family was calibrated; [] if it does not."""
        return self.conditions.reasons_for(_calibration_of(family)) if self.conditions.reasons else []

    def in_conditions(self, family: ServedFamily, policy: Policy) -> Policy:
        """Return the policy; one for requirements without its energies while the board's state is not as calibrated."""
        if isinstance(policy, Requirements) and (differing := self.out_of_conditions(family.name)):
            return policy.without_energies(f"{NOT_AS_CALIBRATED}: {'; '.join(differing)}")
        return policy

    def _watch(self) -> None:
        self.read_board(time.monotonic())
        while not self._stopped.wait(BOARD_INTERVAL_S):
            self.read_board(time.monotonic())

    def read_board(self, now_s: float) -> None:
        """Read the board and its sensors; one thread calls this once a second."""
        self.facts = self.machine.facts()
        if self.sampler is not None:
            self._read_idle(self.sampler)
        idle_measured = {} if self.idle is None or self.idle.facts is None else {IDLE: self.idle.facts}
        self.conditions.compare(now_s, self.facts, idle_measured | self._calibrated_facts)
        if self.sampler is None:
            return
        energy, self._summed_until_ns = self.sampler.since(self._summed_until_ns)
        if self.idle is not None and IDLE not in self.conditions.reasons:
            self.above_idle = _add_above_idle(self.above_idle, energy, self.idle.mean_w)
        was_exceeded = self.budget.is_exceeded
        self.budget.update_means(now_s, energy.mean_w)
        if self.budget.is_exceeded != was_exceeded and (status := self.budget.status) is not None:
            fields = event("power-budget", mean_w=self.budget.mean_w, limit_w=status.budget_w)
            log.warning("power budget of %g W: it %s", status.budget_w, status.state, extra=fields)

    def _read_idle(self, sampler: Sampler) -> None:
        """Load the idle power measured on this board in its current power mode; log a change."""
        if not sampler.total_of:
            self.idle_reason = sampler.reason
            return
        board, mode = sampler.board or self.facts.board.value, self.facts.power_mode.value
        before = self.idle, self.idle_reason
        try:
            self.idle, self.idle_reason = load_idle(power_folder(self._power), board, mode, sampler.total_of), None
        except CalibrationError as error:
            self.idle, self.idle_reason = None, str(error)
        if (self.idle, self.idle_reason) == before:
            return
        if self.idle is None:
            log.warning("energies are not measured: %s", self.idle_reason, extra=event("idle-power-refused"))
        else:
            fields = event("idle-power", mean_w=self.idle.mean_w)
            log.info("idle power is %.2f W, as measured at %s", self.idle.mean_w, self.idle.measured_at, extra=fields)


def _calibration_of(family: str) -> str:
    """Return the name of a family's calibration in `conditions`."""
    return f"calibration of {family}"


def _add_above_idle(total: EnergySum, period: EnergySum, idle_w: float) -> EnergySum:
    """Add a period to the energy above idle power; known_s is the part of its length with known power."""
    energy_j = total.energy_j + period.energy_j - idle_w * period.known_s
    times_s = total.known_s + period.known_s, total.length_s + period.length_s
    return EnergySum(energy_j, *times_s, total.new_values + period.new_values)


SHORTLY_S = 10.0
"""How long an alarm is reported, and how long a reason must be gone before that is logged: temperatures swing around a
trip point."""

BOARD = "the board"  # name of its own warnings, such as throttling, beside those of measurements


class ConditionsWatch:
    """Compares the board's state with that at each measurement in use, and logs differences when they begin and end.

    Energies hold only in the state in which they were measured. One thread calls `compare`; any may read `reasons`.
    """

    def __init__(self) -> None:
        self._states: deque[tuple[float, BoardFacts]] = deque()
        self._present_s: dict[str, float] = {}  # by name: time of the last difference; until it is logged as gone
        self.reasons: dict[str, list[str]] = {}  # differences in words, by measurement or BOARD; replaced as a whole

    def compare(self, now_s: float, facts: BoardFacts, measured: Mapping[str, BoardFacts]) -> None:
        """Compare the board's current state `facts`. measured: its state at each measurement in use, by name."""
        while len(self._states) > 1 and now_s - self._states[1][0] >= SHORTLY_S:
            self._states.popleft()
        earlier = self._states[0][1] if self._states else None
        self._states.append((now_s, facts))
        reasons = {BOARD: throttled(earlier, facts)}
        reasons |= {name: differences(facts_then, facts) for name, facts_then in measured.items()}
        self.reasons = {name: texts for name, texts in reasons.items() if texts}
        self._warn(now_s)

    def reasons_for(self, *measurements: str) -> list[str]:
        """Return the differences, in words, of these measurements and of the board itself."""
        reasons = self.reasons
        return reason_texts({name: reasons[name] for name in (BOARD, *measurements) if name in reasons})

    def _warn(self, now_s: float) -> None:
        """Log a measurement's differences when they appear, and once they have been gone for SHORTLY_S."""
        for name, texts in self.reasons.items():
            if name not in self._present_s:
                fields = event("out-of-conditions")
                log.warning("outside the conditions of the calibration: %s: %s", name, "; ".join(texts), extra=fields)
            self._present_s[name] = now_s
        for name in [name for name, last_s in self._present_s.items() if now_s - last_s >= SHORTLY_S]:
            log.warning("again within the conditions of the calibration: %s", name, extra=event("in-conditions"))
            del self._present_s[name]


def reason_texts(reasons: Mapping[str, list[str]]) -> list[str]:
    """Return every difference as "name of the measurement: difference"."""
    return [f"{name}: {text}" for name, texts in reasons.items() for text in texts]
