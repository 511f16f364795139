"""One family as it is served: its models' queues, driver and policies, and the default for requests."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from jetsel.base.config import Config
from jetsel.base.errors import JetselError, ManifestError
from jetsel.base.events import event
from jetsel.base.weights import Weights
from jetsel.daemon.drift import Drift
from jetsel.daemon.estimates import no_energies
from jetsel.daemon.pace import PointsUsed
from jetsel.daemon.promises import FamilyPromises
from jetsel.edge.models import runners
from jetsel.edge.runner import EdgeClient
from jetsel.engines import Backends, Engine, OnDemandEngine, gains_by_batches, warm_up
from jetsel.features import WORKING_PX
from jetsel.policies import Policy
from jetsel.policies.front import Front
from jetsel.policies.requirements import Requirements
from jetsel.policies.single import Single
from jetsel.policies.with_edge import deadline_policy, requirements_policy
from jetsel.runtime import Driver, ModelQueue, Timers
from jetsel.runtime.forecast import set_priors
from jetsel.site.calibration_in_use import CalibrationInUse
from jetsel.site.configured import ConfiguredFamily, Defaults
from jetsel.zoo import Family, Model, verify

log = logging.getLogger("jetsel.models")


@dataclass(eq=False)
class LoadProblems:
    """Problems of the last load.

    failures: by model that did not load. damage: by loaded model, why it cannot be loaded again; it is served until it
    is unloaded. stand_ins: what replaces a default that cannot run, in words.
    """

    failures: dict[str, JetselError] = field(default_factory=dict)
    damage: dict[str, str] = field(default_factory=dict)
    stand_ins: list[str] = field(default_factory=list)


@dataclass(eq=False)
class ServedFamily:
    """Everything that answers requests for one family. `serve_family` builds it; `load` loads its engines."""

    name: str
    on_disk: Family
    models: dict[str, Model]
    backends: dict[str, str]  # by model
    decode_px: int
    driver: Driver
    policies: dict[str, Policy]
    requirements: Requirements  # policy of requests with requirements
    defaults: Defaults
    in_use: CalibrationInUse  # the calibration
    points_used: PointsUsed
    front: Front | None  # operating points of the default policy, if load or power budget may choose among them
    promises: FamilyPromises
    drift: Drift | None  # None: the calibration has no expected statistics
    problems: LoadProblems = field(default_factory=LoadProblems)

    def take_over(self, before: ServedFamily) -> None:
        """Keep the engines, times and records of models that are unchanged and run on the same backend.

        before: the family of this name in the snapshot that a reload replaces.
        """
        if before.in_use.identity == self.in_use.identity:
            self.drift, self.points_used = before.drift, before.points_used
        for name, queue in self.driver.queues.items():
            old_queue = before.driver.queues.get(name)
            if old_queue is None or not old_queue.serves or old_queue.engine is None or old_queue.engine.is_stale:
                continue
            if before.backends[name] == self.backends[name] and before.weights(name) == self.weights(name):
                # The prior stays: it belongs to this calibration.
                queue.engine, queue.times = old_queue.engine, old_queue.times
                self._verify_again(name)

    def _verify_again(self, name: str) -> None:
        try:
            verify(self.models[name])
        except ManifestError as error:
            self.problems.damage[name] = str(error)
            fields = event("weights-damaged", model=name, family=self.name, path=self.models[name].path)
            words = "model %s of family %s cannot be loaded again, and is served until it is unloaded: %s"
            log.error(words, name, self.name, error, extra=fields)

    @property
    def features_px(self) -> int:
        """Largest number of pixels from which features are computed."""
        calibration = self.in_use.calibration
        return WORKING_PX if calibration is None else calibration.features_px

    def weights(self, name: str) -> Weights:
        """Return what a backend needs to load this model."""
        return self.models[name].weights(len(self.on_disk.labels.names))

    def load(self, config: Config, workers: int, backends: Backends, begin: Callable[[], None]) -> None:
        """Load and warm up every model; one that fails is marked with its reason, and loading continues.

        begin: called before each model; an exception that it raises ends the loading.
        """
        for name, model in self.models.items():
            begin()
            queue = self.driver.queues[name]
            if queue.engine is not None:
                continue  # taken over at a reload: the model is unchanged
            engine: Engine | None = None
            try:
                weights = self.weights(name)
                backends.get(self.backends[name])  # imported first, so that the import does not count as load time
                opened = partial(_open, model, weights, backends, self.backends[name], workers, config.models.threads)
                try_batches = partial(gains_by_batches, weights=weights)
                engine = OnDemandEngine(opened, backends.changed, try_batches=try_batches)
                warm_up(engine, weights)
            except JetselError as error:
                if engine is not None:
                    engine.close()
                queue.unavailable, self.problems.failures[name] = str(error), error
                continue
            queue.engine, queue.unavailable = engine, None

    def stand_in(self) -> None:
        """Replace a default or a fallback that cannot run by the most expensive model that runs, after all are loaded.

        This also logs the models that failed. It waits until here, because a refused reload changes nothing.
        """
        for name, error in self.problems.failures.items():
            fields = event("model-unavailable", model=name, family=self.name, code=error.code)
            log.error("model %s of family %s is unavailable: %s", name, self.name, error, extra=fields)
        running = [name for name, queue in self.driver.queues.items() if queue.engine is not None]
        if not running:
            return  # each request fails with the reason
        best = running[-1]
        name, fallback = self.defaults.policy, self.defaults.fallback
        if fallback not in running:
            self._log_stand_in(f"{best} is the fallback of family {self.name}: {fallback} is unavailable")
            self.defaults = replace(self.defaults, fallback=best)
        needed = self.policies[name].models  # the policy skips those that are unavailable
        if not any(model in running for model in needed):
            because = f"{name} needs {' and '.join(needed)}; the most expensive available model answers instead"
            self._log_stand_in(f"single:{best} is the default of family {self.name}: {name} is unavailable")
            self.defaults = replace(self.defaults, policy=f"single:{best}", because=because)
        missing = self.promises.missing(self.policies[self.defaults.policy])
        if missing is not None:
            words = "requests of family %s fail unless they set wrong_at_most: %s"
            fields = event("promise-missing", family=self.name, reason=missing)
            log.warning(words, self.name, missing, extra=fields)

    def _log_stand_in(self, words: str) -> None:
        self.problems.stand_ins.append(words)
        log.warning("%s", words, extra=event("stands-in", family=self.name, reason=words))

    @property
    def objective(self) -> str | None:
        """The objective of the calibration in use, None if there is none."""
        calibration = self.in_use.calibration
        return None if calibration is None else calibration.objective


def _open(model: Model, weights: Weights, backends: Backends, backend: str, workers: int, threads: int) -> Engine:
    """Verify and load a model. Unlike a method, it holds no family, so that engines can outlive one in a reload."""
    verify(model)
    return backends.open(backend, weights, concurrency=workers, threads=threads)


def serve_family(
    configured: ConfiguredFamily, config: Config, timers: Timers, edge: EdgeClient | None = None
) -> ServedFamily:
    """Build one family from the configuration, without loading models. edge: client of the edge server to use."""
    family, models, in_use = configured.family, configured.models, configured.in_use
    calibration, settings = in_use.calibration, config.edge
    temperatures = {} if calibration is None else calibration.temperatures
    queues = {name: ModelQueue(name, None, temperatures.get(name, 1.0)) for name in models}
    remote = {} if edge is None else runners(config, family, edge)
    queues |= {name: ModelQueue(name, None, runner=runner) for name, runner in remote.items()}
    set_priors(queues, calibration)
    unknown = in_use.unknown(models)
    # If the calibration covers some of the models on this device, only these count.
    places = [name for name in models if name not in unknown] or list(models), list(remote)
    policies, drift = dict(in_use.policies), None
    if calibration is not None:
        timed = deadline_policy(policies, calibration, *places, settings, config.policy.least_accuracy)
        policies |= {} if timed is None else {timed.name: timed}
        if calibration.expected is not None:
            drift = Drift(calibration.expected, calibration.default_policy, calibration.features_px)
    return ServedFamily(
        name=family.name,
        on_disk=family,
        models=models,
        backends={name: config.models.backends.get(name, config.models.backend) for name in models},
        decode_px=family.decode_px,
        driver=Driver(queues, config.models.max_batch, timers=timers),
        policies=policies | {f"single:{name}": Single(name) for name in remote},
        requirements=requirements_policy(in_use.policies, calibration, *places, settings, no_energies(calibration)),
        defaults=configured.defaults,
        in_use=in_use,
        points_used=PointsUsed(family.name),
        front=configured.front,
        promises=FamilyPromises(calibration, config.policy.wrong_at_most),
        drift=drift,
    )
