"""The record of one classify request, from its message to its reply."""

from __future__ import annotations

import time

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from jetsel import image
from jetsel.daemon.admission import Load
from jetsel.daemon.crops import Crop
from jetsel.daemon.family import ServedFamily
from jetsel.daemon.port import Route
from jetsel.daemon.snapshot import Snapshot
from jetsel.image import InputSpec, MeasuredImage, Photograph
from jetsel.image.limits import MAX_SIDE_PX
from jetsel.policies import Policy
from jetsel.policies.front import Front
from jetsel.runtime import RequestRun
from jetsel.wire import Classify


class Job(Struct, eq=False):
    """An admitted request, or one box of it. Times are in seconds of the monotonic clock."""

    route: Route | None  # of the reply; None for the watchdog's probe, which nobody waits for
    message: Classify
    data: memoryview  # the image as it was sent
    load: Load  # what it counts toward the queue's limits
    snapshot: Snapshot  # configuration under which it is answered
    family: ServedFamily
    policy: Policy
    received_s: float
    front: Front | None = None  # operating points: the policy is chosen among them when the job begins
    measured: MeasuredImage | None = None  # the image's size by its header
    crop: Crop | None = None  # its box; None: the whole image
    photograph: Photograph | None = None  # the image, or the part in the box, once decoded
    inputs: dict[InputSpec, NDArray[np.float32]] = field(default_factory=dict)  # models may share one
    was_near_limit: bool = False  # whether it was expected to end shortly before its deadline or latency target
    run: RequestRun | None = None  # None until its policy begins

    @property
    def is_counted(self) -> bool:
        """Whether it counts in the reported runs and times of models. The watchdog's probe does not."""
        return self.route is not None

    @property
    def has_promise(self) -> bool:
        """Whether the calibration guarantees its error rate: then no partial result may answer if time runs out."""
        return self.family.promises.level(self.message.wrong_at_most) is not None

    @property
    def deadline_s(self) -> float | None:
        """Time by which it must be answered, None if the request has no deadline."""
        return None if self.message.deadline_ms is None else self.received_s + self.message.deadline_ms / 1e3

    @property
    def target_s(self) -> float | None:
        """Time by which it should be answered: by the latency target if it has operating points, or by its deadline."""
        target_ms = None if self.front is None else self.snapshot.config.policy.latency_target_ms
        return self.deadline_s if target_ms is None else self.received_s + target_ms / 1e3

    @property
    def file(self) -> memoryview | None:
        """The image file as it was sent; None if raw pixels or a box were sent."""
        return self.data if self.message.pixels is None and self.crop is None else None

    def decode(self) -> Photograph:
        """Return the image or its box, at the size that models need. Raises BadImageError, BadRequestError."""
        if self.crop is not None:
            return self.crop.photograph(lambda: self._decoded(MAX_SIDE_PX))
        return self._decoded(self.family.decode_px)

    def _decoded(self, needed_px: int) -> Photograph:  # needed_px: the shorter side may be scaled down to it
        limits = self.snapshot.limits
        if self.message.pixels is not None:
            return image.from_pixels(self.data, self.message.pixels, limits)
        return image.decode(self.data, limits, needed_px, self.measured)

    def model_input(self, model: str) -> NDArray[np.float32]:
        """Return the input (1, 3, height, width) of a model, made once for all models that share it."""
        spec = self.family.models[model].manifest.input
        made = self.inputs.get(spec)
        if made is None:
            assert self.photograph is not None
            began_s = time.monotonic()
            made = self.inputs[spec] = image.model_input(self.photograph, spec)
            if (run := self.run) is not None:  # None if `give_up` has answered the job meanwhile
                run.stages.input = (run.stages.input or 0.0) + (time.monotonic() - began_s) * 1e3
        return made
