"""From a device's plan to what its daemon serves: fetched, installed, tried out, and taken back where that is worse."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from jetsel.client import Client
from jetsel.errors import JetselError, RepositoryError
from jetsel.events import event
from jetsel.fleet.agent.canary import Canary
from jetsel.fleet.agent.installing import Installer, ModelsRefusedError
from jetsel.fleet.agent.remembered import OnTrial, Remembered, write
from jetsel.fleet.documents import Plan
from jetsel.fleet.reading import read_plan
from jetsel.fleet.sources import Source
from jetsel.fleet.usage import CanaryResult, Trial
from jetsel.zoo import model_folders, scan

log = logging.getLogger("jetsel.fleet")

RELOAD_MS = 300_000.0  # engines load, and requests that are under way are waited for


@dataclass(frozen=True)
class Follower:
    """device: its name in the repository. client: opens the daemon's socket. memory: the file of what is remembered."""

    device: str
    source: Source
    trusted: list[str]
    installer: Installer
    canary: Canary | None
    client: Callable[[], Client]
    memory: Path

    def follow(self, known: Remembered) -> Remembered:
        """Do what is to be done, and return what to remember; what is done is on the disk at each step.

        A trial that was cut short goes on. What could not be done comes back in the next round: no plan, no way to the
        repository, no space, no daemon. A plan whose models do not run, or that makes it worse, is not tried again.
        Raises RepositoryError where the agent's own folder cannot be read or written.
        """
        known = structs.replace(known, waits=None)
        if known.on_trial is not None:
            if self.installer.versions.current() != known.on_trial.before:
                return self._try_out(known, known.on_trial)
            known = structs.replace(known, on_trial=None)  # killed before it was in use
        try:
            plan = read_plan(self.source, self.device, self.trusted, known.seen)
        except RepositoryError as fault:
            return structs.replace(known, waits=_waiting(known.seen, fault))
        if plan.serial <= known.judged:
            return known
        known = self._remember(structs.replace(known, seen=plan.serial))
        try:
            fetched = self.installer.fetch(self.source, plan, self.trusted)
        except RepositoryError as fault:
            return structs.replace(known, waits=_waiting(plan.serial, fault))
        on_trial = OnTrial(serial=plan.serial, before=self.installer.versions.current(), canary=self._before(plan))
        known = self._remember(structs.replace(known, on_trial=on_trial))
        try:
            memory_mb = self.installer.install(plan, fetched)
        except ModelsRefusedError as fault:
            log.error("plan %d is refused: %s", plan.serial, fault, extra=event("plan-refused", serial=plan.serial))
            trial = Trial(serial=plan.serial, outcome="refused", reason=str(fault))
            return structs.replace(known, on_trial=None, judged=plan.serial, trial=trial)
        except RepositoryError as fault:
            return structs.replace(known, on_trial=None, waits=_waiting(plan.serial, fault))
        all_mb = {name: known.memory_mb.get(name, {}) | each for name, each in memory_mb.items()}
        return self._try_out(structs.replace(known, memory_mb=known.memory_mb | all_mb), on_trial)

    def _try_out(self, known: Remembered, on_trial: OnTrial) -> Remembered:
        """Have the daemon use what is installed, and judge it; go back where it is worse."""
        plan = self.installer.installed()
        assert plan is not None
        after: dict[str, CanaryResult] = {}
        began_s = None
        try:
            with self.client() as client:
                client.reload(timeout_ms=RELOAD_MS)
                began_s = time.monotonic()
                worse = self._judge(client, plan, on_trial, after) and self._judge(client, plan, on_trial, after)
        except JetselError as fault:
            if fault.retry:
                return structs.replace(self._remember(known), waits=_waiting(plan.serial, fault))
            worse = str(fault)
        if worse is None:
            self.installer.forget_downloads()
            log.info("plan %d is installed", plan.serial, extra=event("plan-installed", serial=plan.serial))
            trial = Trial(serial=plan.serial, outcome="installed", before=on_trial.canary, after=after)
            return structs.replace(known, on_trial=None, judged=plan.serial, trial=trial)
        return self._go_back(known, on_trial, worse, after, began_s)

    def _go_back(
        self, known: Remembered, on_trial: OnTrial, worse: str, after: dict[str, CanaryResult], began_s: float | None
    ) -> Remembered:
        """Have the version before used again. began_s: since when the daemon answered with it, None: it never did."""
        log.error("plan %d is rolled back: %s", on_trial.serial, worse, extra=event("plan-rolled-back", reason=worse))
        trial = Trial(serial=on_trial.serial, outcome="rolled-back", reason=worse, before=on_trial.canary, after=after)
        known = self._remember(structs.replace(known, judged=on_trial.serial, trial=trial))  # never tried again
        self.installer.versions.use(on_trial.before, lambda _: None)
        try:
            with self.client() as client:
                client.reload(timeout_ms=RELOAD_MS)
        except JetselError as fault:
            trial = structs.replace(trial, reason=f"{worse}; the daemon has not reloaded since: {fault}")
        served_s = 0.0 if began_s is None else round(time.monotonic() - began_s, 1)
        return structs.replace(known, on_trial=None, trial=structs.replace(trial, served_s=served_s))

    def _before(self, plan: Plan) -> dict[str, CanaryResult]:
        """What the canary gives of those planned families that the daemon serves now."""
        found: dict[str, CanaryResult] = {}
        try:
            with self.client() as client:
                served = {family.name for family in client.status().families}
                for one in plan.families:
                    if one.bundle.family in served:
                        self._replay(client, one.bundle.family, found)
        except JetselError as fault:
            log.warning(
                "the canary was not asked before plan %d: %s", plan.serial, fault, extra=event("canary-unasked")
            )
        return found

    def _judge(self, client: Client, plan: Plan, on_trial: OnTrial, after: dict[str, CanaryResult]) -> str | None:
        """Say what has become worse, None for nothing. after: what the canary gives of each family goes in there."""
        served = {family.name: family for family in client.status().families}
        for one in plan.families:
            name = one.bundle.family
            if name not in served:
                return f"the daemon does not serve family {name}: see its log"
            lost = [f"{model.name}: {model.reason}" for model in served[name].models if model.reason is not None]
            if lost:
                return f"family {name}: {'; '.join(lost)}"
            self._replay(client, name, after)
            if self.canary is not None and name in after:
                worse = self.canary.worse(one, on_trial.canary.get(name), after[name])
                if worse is not None:
                    return f"family {name}: {worse}"
        return None

    def _replay(self, client: Client, family: str, into: dict[str, CanaryResult]) -> None:
        here = scan(model_folders(self.installer.config.models)).families
        if self.canary is not None and family in here:
            result = self.canary.replay(client, family, here[family].labels)
            if result is not None:
                into[family] = result

    def _remember(self, known: Remembered) -> Remembered:
        write(self.memory, known)
        return known


def _waiting(serial: int, fault: JetselError) -> Trial:
    log.warning("plan %d waits: %s", serial, fault, extra=event("plan-waits", serial=serial))
    return Trial(serial=serial, outcome="waiting", reason=str(fault))
