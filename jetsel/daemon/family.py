"""One family (a list of classes and the models that share it) as it is served: queues, driver, policies, defaults."""

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
from jetsel.edge.models import edge_runners
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

    failures: errors by name of a model that did not load. damage: by name of a loaded model, why it cannot be loaded
    again; it is served until it is unloaded. stand_ins: sentences that say what replaces a default that cannot run.
    """

    failures: dict[str, JetselError] = field(default_factory=dict)
    damage: dict[str, str] = field(default_factory=dict)
    stand_ins: list[str] = field(default_factory=list)


@dataclass(eq=False)
class ServedFamily:
    """All that answers requests for one family. `serve_family` builds it; `load` adds the engines to driver.queues."""

    name: str
    on_disk: Family  # labels and manifests
    models: dict[str, Model]  # by name, the cheapest first
    backends: dict[str, str]  # by model
    decode_px: int  # shorter side that a decoded image must keep for every model
    driver: Driver
    policies: dict[str, Policy]
    requirements: Requirements  # policy of requests that set least_accuracy or most_energy_mj
    defaults: Defaults
    in_use: CalibrationInUse
    points_used: PointsUsed
    front: Front | None  # operating points of the default policy, if load or power budget may choose among them
    promises: FamilyPromises  # error rates that the calibration guarantees
    drift: Drift | None  # None if the calibration has no expected statistics
    problems: LoadProblems = field(default_factory=LoadProblems)

    def keep_unchanged(self, before: ServedFamily) -> None:
        """Take engines and times of models with unchanged weights and backend from the same family before a reload.

        If the calibration is unchanged, its drift check and its counts of operating points continue.
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
        """Note and log if the files of a loaded model have been damaged since; it is served until it is unloaded."""
        try:
            verify(self.models[name])
        except ManifestError as error:
            self.problems.damage[name] = str(error)
            fields = event("weights-damaged", model=name, family=self.name, path=self.models[name].path)
            words = "model %s of family %s cannot be loaded again, and is served until it is unloaded: %s"
            log.error(words, name, self.name, error, extra=fields)

    @property
    def features_px(self) -> int:
        """Largest size, in pixels of the whole image, at which features are computed."""
        calibration = self.in_use.calibration
        return WORKING_PX if calibration is None else calibration.features_px

    def weights(self, name: str) -> Weights:
        """Return what a backend needs to load this model."""
        return self.models[name].weights(len(self.on_disk.labels.names))

    def load(self, config: Config, workers: int, backends: Backends, before_each: Callable[[], None]) -> None:
        """Load and warm up every model without an engine; one that fails gets its reason, and loading continues.

        workers: threads that may run one model at a time. before_each: called before each model; its exceptions end
        the loading.
        """
        for name, model in self.models.items():
            before_each()
            queue = self.driver.queues[name]
            if queue.engine is not None:
                continue  # taken over at a reload: the model is unchanged
            engine: Engine | None = None
            try:
                weights = self.weights(name)
                backends.get(self.backends[name])  # imported first, so that the import does not count as load time
                how = self.backends[name], workers, config.models.threads
                load_engine = partial(_load_model, model, weights, backends, *how)
                try_batches = partial(gains_by_batches, weights=weights)
                engine = OnDemandEngine(load_engine, backends.changed, try_batches=try_batches)
                warm_up(engine, weights)
            except JetselError as error:
                if engine is not None:
                    engine.close()
                queue.unavailable, self.problems.failures[name] = str(error), error
                continue
            queue.engine, queue.unavailable = engine, None

    def replace_unavailable(self) -> None:
        """Replace a default policy or fallback model that cannot run by the most expensive model that can.

        Log the models that failed and what replaces them. `load` does not, because a reload may still be refused.
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
            self._note_stand_in(f"{best} is the fallback of family {self.name}: {fallback} is unavailable")
            self.defaults = replace(self.defaults, fallback=best)
        needed = self.policies[name].models  # the policy skips those that are unavailable
        if not any(model in running for model in needed):
            because = f"{name} needs {' and '.join(needed)}; the most expensive available model answers instead"
            self._note_stand_in(f"single:{best} is the default of family {self.name}: {name} is unavailable")
            self.defaults = replace(self.defaults, policy=f"single:{best}", because=because)
        missing = self.promises.reason_missing(self.policies[self.defaults.policy])
        if missing is not None:
            words = "requests of family %s fail unless they set wrong_at_most: %s"
            fields = event("promise-missing", family=self.name, reason=missing)
            log.warning(words, self.name, missing, extra=fields)

    def _note_stand_in(self, sentence: str) -> None:
        self.problems.stand_ins.append(sentence)
        log.warning("%s", sentence, extra=event("stands-in", family=self.name, reason=sentence))

    @property
    def objective(self) -> str | None:
        """What the calibration in use was optimised for, None without a calibration."""
        calibration = self.in_use.calibration
        return None if calibration is None else calibration.objective


def _load_model(model: Model, weights: Weights, backends: Backends, backend: str, workers: int, threads: int) -> Engine:
    """Verify a model's files and load it. No method, so that an engine kept by a reload does not keep its family."""
    verify(model)
    return backends.open(backend, weights, concurrency=workers, threads=threads)


def serve_family(
    configured: ConfiguredFamily, config: Config, timers: Timers, edge: EdgeClient | None = None
) -> ServedFamily:
    """Build one family from the configuration, without loading models. edge: client of its edge server, if any."""
    family, models, in_use = configured.family, configured.models, configured.in_use
    calibration, settings = in_use.calibration, config.edge
    temperatures = {} if calibration is None else calibration.temperatures
    queues = {name: ModelQueue(name, None, temperatures.get(name, 1.0)) for name in models}
    remote = {} if edge is None else edge_runners(config, family, edge)
    queues |= {name: ModelQueue(name, None, runner=runner) for name, runner in remote.items()}
    set_priors(queues, calibration)
    unknown = in_use.unknown(models)
    # If the calibration covers some of the models on this device, only these count.
    model_sets = [name for name in models if name not in unknown] or list(models), list(remote)
    policies, drift = dict(in_use.policies), None
    if calibration is not None:
        timed = deadline_policy(policies, calibration, *model_sets, settings, config.policy.least_accuracy)
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
        requirements=requirements_policy(in_use.policies, calibration, *model_sets, settings, no_energies(calibration)),
        defaults=configured.defaults,
        in_use=in_use,
        points_used=PointsUsed(family.name),
        front=configured.front,
        promises=FamilyPromises(calibration, config.policy.wrong_at_most),
        drift=drift,
    )
