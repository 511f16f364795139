"""Power in the daemon: its sampler, idle power, what the board is compared with, the estimates, and the budget."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from jetsel.config import Power, power_folder
from jetsel.daemon.family import ServedFamily
from jetsel.daemon.metering.budget import Budget
from jetsel.daemon.metering.conditions import Conditions
from jetsel.daemon.metering.estimates import Estimates, estimated_mj
from jetsel.errors import CalibrationError
from jetsel.events import event
from jetsel.policies import Policy
from jetsel.policies.capped import capped
from jetsel.power.idle import Idle, file_name, load
from jetsel.power.integration import FEWEST, Sum
from jetsel.power.machine import Facts, Machine, restored
from jetsel.power.sampler import Sampler
from jetsel.runtime import Flight
from jetsel.wire import Answer, Classify

log = logging.getLogger("jetsel.power")

LOOK_S = 1.0  # between two looks at the board
JTOP_WAIT_S = 2.0  # at the start, for the first answer of jetson-stats
IDLE = "idle power"


class Metering:
    """Owned by the daemon for its life; a reload changes the budget, and reads the idle power again.

    idle: what is deducted, None where it is not known for this board in its power mode of now, and then idle_reason
    says why. above_idle: what was measured above idle power since the start, as long as that was known and
    the board was as it was then.
    """

    def __init__(self, power: Power) -> None:
        """Start the sampler, unless [power] says that there is no sensor."""
        self.machine = Machine(power.sysfs, power.jtop)
        self.facts = self.machine.facts(JTOP_WAIT_S if power.jtop else 0.0)
        self.conditions = Conditions()
        self.budget = Budget(power.budget_w, 0)
        self.estimates = Estimates()
        self.idle: Idle | None = None
        self.idle_reason: str | None = "the sensors are being looked for"
        self.above_idle = Sum()
        self.served: Mapping[str, ServedFamily] = {}
        self._power = power
        self.sampler = None if power.sensor == "none" and power.replay is None else Sampler(power)
        self._rails: tuple[str, ...] = ()  # of the total that idle power was read for
        self._idle_file: tuple[Path, int, int] | None = None  # the one that was read last, as it was
        self._made_under: dict[str, Facts] = {}  # of the calibrations that tell, by how conditions name them
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
        """Tell of these families from now on, under this configuration's budget; read the idle power again."""
        self.served = families
        self.budget.most = max(len(family.models) for family in families.values()) - 1
        self.budget.limit_w = power.budget_w
        calibrated = {name: family.in_use.calibration for name, family in families.items()}
        made_under = {name: restored(made.machine) for name, made in calibrated.items() if made is not None}
        self._made_under = {calibration_of(name): facts for name, facts in made_under.items() if facts is not None}
        self._idle_file = None

    @property
    def reason(self) -> str | None:
        """Why no power is read, None where it is."""
        return '[power] sensor is "none"' if self.sampler is None else self.sampler.reason

    # What a request needs.

    def estimate(self, family: ServedFamily, policy: Policy, flight: Flight) -> tuple[float | None, str | None]:
        """Return the calibrated energy of what ran for a request, in mJ, or None and why it is not known."""
        differing = self.out_of_conditions(family.name)
        if differing:
            return None, f"the board is not as it was calibrated: {'; '.join(differing)}"
        found = estimated_mj(flight.ran, bool(policy.features), family.in_use.calibration)
        return (None, found) if isinstance(found, str) else (found, None)

    def answered(self, answer: Answer, family: ServedFamily, policy: Policy) -> None:
        """Add up the energy of an answer that is given."""
        self.estimates.add(answer, bool(policy.features), family.in_use.calibration)

    def out_of_conditions(self, family: str) -> list[str]:
        """Return how the board differs from what a family's energies and choices were measured under."""
        return self.conditions.of(calibration_of(family))

    def within_budget(self, family: ServedFamily, policy: Policy, request: Classify) -> Policy:
        """Return the policy without what the budget leaves out; one that the request names is honoured as it is."""
        level, limit_w = self.budget.level, self.budget.limit_w
        if not level or limit_w is None or request.model is not None or request.policy is not None:
            return policy
        return capped(policy, list(family.models), level, f"to keep the power budget of {limit_w:g} W")

    # What is done beside the requests.

    def _watch(self) -> None:
        self.look(time.monotonic())
        while not self._stopped.wait(LOOK_S):
            self.look(time.monotonic())

    def look(self, now_s: float) -> None:
        """Take in what the board and its sensors say now; once a second, by one thread."""
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
        if self.budget.look(now_s, passed.mean_w):
            level, state = self.budget.level, self.budget.state
            told = event("power-budget", level=level, mean_w=self.budget.mean_w, limit_w=self.budget.limit_w)
            log.warning("power budget: level %d: %s", level, state, extra=told)

    def _read_idle(self, sampler: Sampler) -> None:
        """Read what was measured on this board in its power mode of now, where its file is another than before.

        Where there is none for this mode, what is in use stays: conditions tell that it is of another one.
        """
        if not sampler.total_of:
            self.idle_reason = sampler.reason
            return
        rails, board = sampler.total_of, sampler.board or self.facts.board.value
        folder, mode = power_folder(self._power), self.facts.power_mode.value
        path = folder / file_name(board, mode)
        seen = _look_at(path)
        if self._rails == rails and self._idle_file is not None and (seen == self._idle_file or seen[1] == 0):
            return
        self._rails, self._idle_file = rails, seen
        before = self.idle
        try:
            self.idle, self.idle_reason = load(folder, board, mode, rails), None
        except CalibrationError as error:
            # Status carries it: which file that is, the log says, and doctor.
            self.idle, self.idle_reason = None, str(error).removeprefix(f"{path}: ")
            log.warning("energies are not measured: %s", error, extra=event("idle-power-refused", path=path))
        if self.idle is not None and self.idle != before:
            told = event("idle-power", mean_w=self.idle.mean_w)
            log.info("idle power is %.2f W, as measured at %s", self.idle.mean_w, self.idle.measured_at, extra=told)


def measured_j(metering: Metering) -> float | None:
    """Return the joules measured above idle since the start, None where the sensor had too few new values."""
    found = metering.above_idle
    return found.energy_j if found.new_values >= FEWEST else None


def calibration_of(family: str) -> str:
    """How conditions name a family's calibration."""
    return f"calibration of {family}"


def _more(before: Sum, passed: Sum, idle_w: float) -> Sum:
    return Sum(
        before.energy_j + passed.energy_j - idle_w * passed.known_s,
        before.known_s + passed.known_s,
        before.length_s + passed.length_s,
        before.new_values + passed.new_values,
    )


def _look_at(path: Path) -> tuple[Path, int, int]:
    """Tell one state of a file from another; 0 and 0 where there is none to see."""
    try:
        found = path.stat()
    except OSError:
        return path, 0, 0
    return path, found.st_ino, found.st_mtime_ns
