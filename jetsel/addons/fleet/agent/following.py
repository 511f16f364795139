"""Follows a device's plan: fetches and installs models, tests them, and rolls back if they are worse."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from jetsel.addons.fleet.agent.canary import MOST_PHOTOGRAPHS, Canary
from jetsel.addons.fleet.agent.installing import Installer, ModelsRefusedError, UnprovenError
from jetsel.addons.fleet.agent.remembered import AgentMemory, OnTrial, write
from jetsel.addons.fleet.documents import Plan
from jetsel.addons.fleet.reading import read_plan
from jetsel.addons.fleet.sources import RepositorySource
from jetsel.addons.fleet.usage import CanaryResult, Trial
from jetsel.base.errors import JetselError, NoReplyError, RepositoryError
from jetsel.base.events import event
from jetsel.client import Client
from jetsel.zoo import model_folders, scan

log = logging.getLogger("jetsel.fleet")

RELOAD_MS = 300_000.0  # engines load, and running requests are waited for
MOST_ROUNDS = 3  # of one plan without a verdict: its models may hang the daemon, or prevent its start


@dataclass(frozen=True)
class Follower:
    """Follows one device's plan. trusted: public keys. client: connects to the daemon. memory: file of AgentMemory."""

    device: str
    source: RepositorySource
    trusted: list[str]
    installer: Installer
    canary: Canary | None
    client: Callable[[], Client]
    memory: Path

    def follow(self, memory: AgentMemory) -> AgentMemory:
        """Do the next steps of the plan; return what to remember, which is saved at each step.

        An interrupted trial or rollback continues. Whatever fails for lack of a plan, a connection, space or a daemon
        is tried again in the next round. A plan is not tried again if its models do not run, if it makes the daemon
        worse, or if it has no verdict after MOST_ROUNDS. Raises RepositoryError if the agent's folder cannot be read or
        written.
        """
        memory = structs.replace(memory, waits=None)
        if memory.on_trial is not None and memory.on_trial.worse is not None:
            memory = self._use_previous_version(memory, memory.on_trial)
        elif memory.on_trial is not None and (plan := self._in_use(memory.on_trial)) is not None:
            if memory.on_trial.rounds >= MOST_ROUNDS:  # each round was killed
                why = f"{MOST_ROUNDS} rounds ended without a verdict"
                return self._roll_back(memory, memory.on_trial, why, {}, None)
            on_trial = structs.replace(memory.on_trial, rounds=memory.on_trial.rounds + 1)
            return self._test_installed(write(self.memory, structs.replace(memory, on_trial=on_trial)), on_trial, plan)
        serials = _highest_serial(memory.seen, self.trusted)
        try:
            plan, signers = read_plan(self.source, self.device, self.trusted, serials)
        except RepositoryError as fault:
            return structs.replace(memory, waits=memory.waits or _waiting_trial(serials, fault))
        if plan.serial <= _highest_serial(memory.judged, self.trusted):
            was_installed = memory.trial is not None and memory.trial.outcome == "installed"
            if not was_installed or self.installer.installed() is not None:  # None: it is no longer on the disk
                return memory
        memory = write(self.memory, structs.replace(memory, seen=memory.seen | dict.fromkeys(signers, plan.serial)))
        try:
            fetched = self.installer.fetch(self.source, plan, self.trusted)
        except RepositoryError as fault:
            return structs.replace(memory, waits=_waiting_trial(plan.serial, fault))
        return self._install(memory, plan, fetched)

    def _install(self, memory: AgentMemory, plan: Plan, fetched: list[Path]) -> AgentMemory:
        """Install the fetched models, and test them."""
        last = memory.on_trial
        rounds = last.rounds if last is not None and last.serial == plan.serial and last.worse is None else 0
        if rounds >= MOST_ROUNDS:  # each round was killed
            return self._refuse(memory, plan, f"{MOST_ROUNDS} rounds ended without a verdict")
        before = self.installer.versions.current()
        on_trial = OnTrial(serial=plan.serial, before=before, canary=self._canary_before(plan), rounds=rounds + 1)
        memory = write(self.memory, structs.replace(memory, on_trial=on_trial))
        try:
            memory_mb = self.installer.install(plan, fetched)
        except ModelsRefusedError as fault:
            return self._refuse(memory, plan, str(fault))
        except UnprovenError as fault:
            if on_trial.rounds >= MOST_ROUNDS:
                return self._refuse(memory, plan, f"{MOST_ROUNDS} rounds ended without a verdict: {fault}")
            return structs.replace(memory, waits=_waiting_trial(plan.serial, fault))
        except RepositoryError as fault:
            return structs.replace(memory, on_trial=None, waits=_waiting_trial(plan.serial, fault))
        all_mb = {name: memory.memory_mb.get(name, {}) | each for name, each in memory_mb.items()}
        return self._test_installed(structs.replace(memory, memory_mb=memory.memory_mb | all_mb), on_trial, plan)

    def _refuse(self, memory: AgentMemory, plan: Plan, why: str) -> AgentMemory:
        log.error("plan %d is rejected: %s", plan.serial, why, extra=event("plan-refused", serial=plan.serial))
        self.installer.forget_downloads()
        return _with_verdict(memory, Trial(serial=plan.serial, outcome="refused", reason=why))

    def _in_use(self, on_trial: OnTrial) -> Plan | None:
        """Return the plan on trial if its version is in use; None if the agent was killed before, or it is lost."""
        plan = self.installer.installed()
        is_in_use = self.installer.versions.current() != on_trial.before and plan is not None
        return plan if is_in_use and plan is not None and plan.serial == on_trial.serial else None

    def _test_installed(self, memory: AgentMemory, on_trial: OnTrial, plan: Plan) -> AgentMemory:
        """Make the daemon load the installed version, and judge it; roll back if it is worse or gets no verdict."""
        after: dict[str, CanaryResult] = {}
        began_s = None
        try:
            with self.client() as client:
                client.reload(timeout_ms=RELOAD_MS)
                began_s = time.monotonic()
                worse = self._judge(client, plan, on_trial, after) and self._judge(client, plan, on_trial, after)
        except JetselError as fault:
            if fault.retry and on_trial.rounds < MOST_ROUNDS:
                return structs.replace(write(self.memory, memory), waits=_waiting_trial(plan.serial, fault))
            worse = f"{MOST_ROUNDS} rounds ended without a verdict: {fault}" if fault.retry else str(fault)
        if worse is None:
            self.installer.forget_downloads()
            log.info("plan %d is installed", plan.serial, extra=event("plan-installed", serial=plan.serial))
            trial = Trial(serial=plan.serial, outcome="installed", before=on_trial.canary, after=after)
            return _with_verdict(memory, trial)
        return self._roll_back(memory, on_trial, worse, after, began_s)

    def _roll_back(
        self, memory: AgentMemory, on_trial: OnTrial, worse: str, after: dict[str, CanaryResult], began_s: float | None
    ) -> AgentMemory:
        """Judge a plan as worse, and roll back. began_s: since when the daemon used it, None: never."""
        log.error("plan %d is rolled back: %s", on_trial.serial, worse, extra=event("plan-rolled-back", reason=worse))
        trial = Trial(serial=on_trial.serial, outcome="rolled-back", reason=worse, before=on_trial.canary, after=after)
        on_trial = structs.replace(on_trial, worse=worse)
        # A killed agent continues here.
        memory = write(self.memory, structs.replace(_with_verdict(memory, trial), on_trial=on_trial))
        memory = self._use_previous_version(memory, on_trial)
        if memory.on_trial is not None:
            return memory
        served_s = 0.0 if began_s is None else round(time.monotonic() - began_s, 1)
        return structs.replace(memory, trial=structs.replace(trial, served_s=served_s))

    def _use_previous_version(self, memory: AgentMemory, on_trial: OnTrial) -> AgentMemory:
        """Use the previous version again. Until the daemon has loaded it, later rounds try again."""
        if self.installer.versions.current() != on_trial.before:
            self.installer.versions.use(on_trial.before, lambda _: None)
        try:
            with self.client() as client:
                client.reload(timeout_ms=RELOAD_MS)
                for family in client.status().families:  # one image each shows that no model hangs
                    self._canary(client, family.name, {}, most=1)  # the results are not needed
        except JetselError as fault:
            repair = "; if this continues, restart the daemon" if isinstance(fault, NoReplyError) else ""
            why = f"{on_trial.worse}; the rollback failed: {fault}{repair}"
            return structs.replace(memory, waits=_waiting_trial(on_trial.serial, why))
        self.installer.forget_downloads()
        return structs.replace(memory, on_trial=None)

    def _canary_before(self, plan: Plan) -> dict[str, CanaryResult]:
        """Return the canary results of the planned families that the daemon serves now."""
        results: dict[str, CanaryResult] = {}
        try:
            with self.client() as client:
                served = {family.name for family in client.status().families}
                for one in plan.families:
                    if one.bundle.family in served:
                        self._canary(client, one.bundle.family, results)
        except JetselError as fault:
            words = "the canary images were not classified before plan %d: %s"
            log.warning(words, plan.serial, fault, extra=event("canary-unasked"))
        return results

    def _judge(self, client: Client, plan: Plan, on_trial: OnTrial, after: dict[str, CanaryResult]) -> str | None:
        """Return what has become worse, None for nothing. after: receives the canary result of each family."""
        served = {family.name: family for family in client.status().families}
        for one in plan.families:
            name = one.bundle.family
            if name not in served:
                return f"the daemon does not serve family {name}: see its log"
            lost = [f"{model.name}: {model.reason}" for model in served[name].models if model.reason is not None]
            if lost:
                return f"family {name}: {'; '.join(lost)}"
            self._canary(client, name, after)
            if self.canary is not None and name in after:
                worse = self.canary.degradation(one, on_trial.canary.get(name), after[name])
                if worse is not None:
                    return f"family {name}: {worse}"
        return None

    def _canary(self, client: Client, family: str, into: dict[str, CanaryResult], most: int = MOST_PHOTOGRAPHS) -> None:
        """Classify at most `most` canary images of a family, and add the result, if there are any, to `into`."""
        here = scan(model_folders(self.installer.config.models)).families
        if self.canary is not None and family in here:
            result = self.canary.replay(client, family, here[family].labels, most)
            if result is not None:
                into[family] = result


def _highest_serial(serials: Mapping[str, int], trusted: Collection[str]) -> int:
    """Return the highest serial under a trusted public key, 0 for none. serials: by public key."""
    return max((serials.get(key, 0) for key in trusted), default=0)


def _with_verdict(memory: AgentMemory, trial: Trial) -> AgentMemory:
    """Return the memory with this verdict, under the keys that signed the plan."""
    on_trial = {key: serial for key, serial in memory.seen.items() if serial == trial.serial}
    return structs.replace(memory, on_trial=None, judged=memory.judged | on_trial, trial=trial)


def _waiting_trial(serial: int, fault: JetselError | str) -> Trial:
    log.warning("plan %d waits: %s", serial, fault, extra=event("plan-waits", serial=serial))
    return Trial(serial=serial, outcome="waiting", reason=str(fault))
