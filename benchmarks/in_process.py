"""The starter family without a daemon: the same policy, driver, decoding and engines, one photograph at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.bare import LIMITS
from jetsel import image
from jetsel.artefact.coding import read
from jetsel.base.errors import InternalError
from jetsel.engines.onnx import OnnxEngine
from jetsel.features import extract
from jetsel.policies import Decision, Policy, catalogue
from jetsel.runtime import Driver, ModelQueue, RequestRun
from jetsel.site.calibration_in_use import check_fits
from jetsel.wire import Classify
from jetsel.zoo import Family, verify


@dataclass(frozen=True)
class Said:
    """What is compared: the label's wnid and the models that ran, in order."""

    wnid: str
    ran: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.wnid} by {', '.join(self.ran)}"


@dataclass(eq=False)
class _Request:
    """A request about one image. See jetsel.runtime.request_run.Request."""

    message, deadline_s, is_counted, has_promise, file = Classify(1, ""), None, True, False, None
    photograph: image.Photograph
    specs: Mapping[str, image.InputSpec]

    def model_input(self, model: str) -> NDArray[np.float32]:
        """Return what a model takes."""
        return image.model_input(self.photograph, self.specs[model])


class InProcess:
    """Answers as the daemon with its defaults should; put together here from the same parts."""

    def __init__(self, family: Family, policy: str | None) -> None:
        names = [model.manifest.name for model in family.models]
        found = read(family.models[0].directory / "calibration")
        hashes = {model.manifest.name: model.manifest.identity for model in family.models}
        check_fits(found, family, hashes)
        self._family = family
        self._specs = {model.manifest.name: model.manifest.input for model in family.models}
        self._policy: Policy = catalogue(names, found)[policy or found.default_policy]
        self._fallback = names[-1]
        queues = {}
        for model in family.models:
            verify(model)
            name = model.manifest.name
            engine = OnnxEngine(name, model.path, concurrency=1, threads=1)
            queues[name] = ModelQueue(name, engine, found.temperatures.get(name, 1.0))
        self._driver = Driver(queues, max_batch=1)

    def classify(self, data: bytes) -> Said:
        """Run the policy on one encoded photograph; raises JetselError where the daemon would answer with it."""
        photograph = image.decode(data, LIMITS, self._family.decode_px)
        features = extract(photograph.bgr, self._policy.features) if self._policy.features else None
        run = RequestRun(features, self._fallback, policy=self._policy, request=_Request(photograph, self._specs))
        self._driver.start(run)
        self._driver.continue_runs(run)
        outcome = run.outcome
        if not isinstance(outcome, Decision):
            raise outcome or InternalError("the policy did not end")
        return Said(self._family.labels.wnids[outcome.prediction.label], tuple(run.model for run in run.ran))
