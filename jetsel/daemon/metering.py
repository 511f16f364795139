"""Power in the daemon: sampler, idle power, the board's conditions, energy estimates, and the power budget."""

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
from jetsel.daemon.pace import Budget
from jetsel.policies import Policy
from jetsel.policies.requirements import Requirements
from jetsel.power.idle import Idle, load
from jetsel.power.integration import Sum
from jetsel.power.machine import BoardFacts, Machine, differences, restored, throttled
from jetsel.power.sampler import Sampler
from jetsel.runtime import RequestRun
from jetsel.wire import Answer

log = logging.getLogger("jetsel.power")

LOOK_S = 1.0  # between two looks at the board
RAILS_EVERY_S = 1.0  # interval for single rails, which only `status` reads
JTOP_WAIT_S = 2.0  # at the start, for the first answer of jetson-stats
IDLE = "idle power"
NOT_AS_CALIBRATED = "the board's state differs from that at the calibration"


class Metering:
    """Power measurement, which lives as long as the daemon; a reload changes only the budget.

    idle: idle power of this board in its current power mode; if it is None, idle_reason holds the reason. above_idle:
    energy above idle power since the start, summed while idle power is known and the board is in the conditions of that
    measurement.
    """

    def __init__(self, power: Power) -> None:
        """Start the sampler, unless [power] sensor is "none"."""
        self.machine = Machine(power.sysfs, power.jtop)
        self.facts = self.machine.facts(JTOP_WAIT_S if power.jtop else 0.0)
        self.conditions = ConditionsWatch()
        self.budget = Budget(power.budget_w)
        self.estimates = Estimates()
        self.idle: Idle | None = None
        self.idle_reason: str | None = "searching for power sensors"
        self.above_idle = Sum()
        self._power = power
        self._mj_per_kb: float | None = None
        self.sampler = None if power.sensor == "none" else Sampler(power, RAILS_EVERY_S)
        self._made_under: dict[str, BoardFacts] = {}  # board state at each calibration, by its name in `conditions`
        self._seen_ns = time.monotonic_ns()
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

    def serve(self, families: Mapping[str, ServedFamily], config: Config) -> None:
        """Meter these families from now on, with this configuration's budget and energy of sending."""
        self._mj_per_kb = config.edge.mj_per_kb
        self.budget.set(config.power.budget_w)
        for family in families.values():
            family.driver.shared.on_unused_result = partial(self.unused, family)
        calibrated = {name: family.in_use.calibration for name, family in families.items()}
        made_under = {name: restored(made.machine) for name, made in calibrated.items() if made is not None}
        self._made_under = {_calibration_of(name): facts for name, facts in made_under.items() if facts is not None}

    @property
    def reason(self) -> str | None:
        """Return why no power is measured, None if it is."""
        return '[power] sensor is "none"' if self.sampler is None else self.sampler.reason

    # For a request.

    def estimate(
        self, family: ServedFamily, policy: Policy, run: RequestRun, differing: list[str]
    ) -> tuple[float | None, str | None]:
        """Return the calibrated energy of a request's runs in mJ, or None and the reason why it is unknown.

        differing: the result of `out_of_conditions` for the family.
        """
        if differing:
            return None, f"{NOT_AS_CALIBRATED}: {'; '.join(differing)}"
        return estimated_mj(run.ran, bool(policy.features), family.in_use.calibration, self._mj_per_kb)

    def add(self, answer: Answer, family: ServedFamily, policy: Policy) -> None:
        """Add the energy of an answer to the estimates, and to the power budget if its operating point was chosen.

        The budget uses the calibrated energy in every state of the board: the measured power already includes what the
        state changes.
        """
        calibration, chose = family.in_use.calibration, bool(policy.features)
        self.estimates.add(answer, chose, calibration)
        if answer.operating_point is not None:
            self.budget.spend(estimated_mj(answer.ran, chose, calibration, self._mj_per_kb)[0])

    def unused(self, family: ServedFamily, model: str) -> None:
        """Add the energy of a run on this device whose result was not needed any more."""
        calibration = None if self.out_of_conditions(family.name) else family.in_use.calibration
        if model in family.models:
            energy_mj = None if calibration is None else calibration.energy.mean_mj.get(model)
            self.estimates.unused(family.name, model, energy_mj)

    def out_of_conditions(self, family: str) -> list[str]:
        """Return how the board differs from its state when the family was calibrated."""
        return self.conditions.of(_calibration_of(family)) if self.conditions.reasons else []

    def in_conditions(self, family: ServedFamily, policy: Policy) -> Policy:
        """Return the policy; one of requirements loses its energies while the board differs from the calibration."""
        if isinstance(policy, Requirements) and (differing := self.out_of_conditions(family.name)):
            return policy.without_energies(f"{NOT_AS_CALIBRATED}: {'; '.join(differing)}")
        return policy

    # In the power thread.

    def _watch(self) -> None:
        self.look(time.monotonic())
        while not self._stopped.wait(LOOK_S):
            self.look(time.monotonic())

    def look(self, now_s: float) -> None:
        """Read the board and its sensors; one thread calls this once a second."""
        self.facts = self.machine.facts()
        if self.sampler is not None:
            self._read_idle(self.sampler)
        measured = {} if self.idle is None or self.idle.facts is None else {IDLE: self.idle.facts}
        self.conditions.look(now_s, self.facts, measured | self._made_under)
        if self.sampler is None:
            return
        passed, self._seen_ns = self.sampler.since(self._seen_ns)
        if self.idle is not None and IDLE not in self.conditions.reasons:
            self.above_idle = _more(self.above_idle, passed, self.idle.mean_w)
        was_exceeded = self.budget.is_exceeded
        self.budget.look(now_s, passed.mean_w)
        if self.budget.is_exceeded != was_exceeded and (now := self.budget.status) is not None:
            fields = event("power-budget", mean_w=self.budget.mean_w, limit_w=now.budget_w)
            log.warning("power budget of %g W: it %s", now.budget_w, now.state, extra=fields)

    def _read_idle(self, sampler: Sampler) -> None:
        """Load the idle power measured on this board in its current power mode; log a change."""
        if not sampler.total_of:
            self.idle_reason = sampler.reason
            return
        board, mode = sampler.board or self.facts.board.value, self.facts.power_mode.value
        before = self.idle, self.idle_reason
        try:
            self.idle, self.idle_reason = load(power_folder(self._power), board, mode, sampler.total_of), None
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
    return f"calibration of {family}"


def _more(before: Sum, passed: Sum, idle_w: float) -> Sum:
    return Sum(
        before.energy_j + passed.energy_j - idle_w * passed.known_s,
        before.known_s + passed.known_s,
        before.length_s + passed.length_s,
        before.new_values + passed.new_values,
    )


SHORTLY_S = 10.0
"""How long an alarm is reported, and how long a reason must be gone before that is logged: temperatures swing around a
trip point."""

BOARD = "the board"


class ConditionsWatch:
    """Compares the board with its state at each measurement, and remembers which warnings it has logged.

    One thread calls `look`; any thread may read `reasons`.
    """

    def __init__(self) -> None:
        self._looks: deque[tuple[float, BoardFacts]] = deque()
        self._seen_s: dict[str, float] = {}  # by name: when a reason was last present
        self.reasons: dict[str, list[str]] = {}
        """Reasons by name: BOARD, or a measurement. The dictionary is replaced as a whole and never changed."""

    def look(self, now_s: float, facts: BoardFacts, measured: Mapping[str, BoardFacts]) -> None:
        """Compare the board's current state. measured: the board's state at each measurement in use, by name."""
        while len(self._looks) > 1 and now_s - self._looks[1][0] >= SHORTLY_S:
            self._looks.popleft()
        before = self._looks[0][1] if self._looks else None
        self._looks.append((now_s, facts))
        reasons = {BOARD: throttled(before, facts)} | {what: differences(was, facts) for what, was in measured.items()}
        self.reasons = {what: why for what, why in reasons.items() if why}
        self._warn(now_s)

    def of(self, *concerned: str) -> list[str]:
        """Return the reasons, in words, that concern the board or one of these measurements."""
        reasons = self.reasons
        return words({what: reasons[what] for what in (BOARD, *concerned) if what in reasons})

    def _warn(self, now_s: float) -> None:
        """Log the reasons once when they appear, and once when all are gone."""
        for what, why in self.reasons.items():
            if what not in self._seen_s:
                fields = event("out-of-conditions")
                log.warning("outside the conditions of the calibration: %s: %s", what, "; ".join(why), extra=fields)
            self._seen_s[what] = now_s
        for what in [what for what, seen_s in self._seen_s.items() if now_s - seen_s >= SHORTLY_S]:
            log.warning("again within the conditions of the calibration: %s", what, extra=event("in-conditions"))
            del self._seen_s[what]


def words(reasons: Mapping[str, list[str]]) -> list[str]:
    """Return every reason as text that begins with its name."""
    return [f"{what}: {reason}" for what, why in reasons.items() for reason in why]
