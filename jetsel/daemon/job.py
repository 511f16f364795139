"""One classify request from its message to its answer: what is known of it at each stage."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from jetsel import image
from jetsel.daemon.admission import Load
from jetsel.daemon.crops import Crop
from jetsel.daemon.family import ServedFamily
from jetsel.daemon.port import Route
from jetsel.daemon.snapshot import Snapshot
from jetsel.image import Measured, Photograph
from jetsel.image.limits import MAX_SIDE_PX
from jetsel.policies import Policy
from jetsel.policies.front import Front
from jetsel.runtime import RequestRun
from jetsel.wire import Classify


class Job(Struct, eq=False):
    """An admitted request. Times are seconds on the monotonic clock, stages in milliseconds."""

    route: Route | None  # None: nobody waits for the reply
    request: Classify
    data: memoryview
    load: Load
    snapshot: Snapshot
    family: ServedFamily
    policy: Policy
    fallback: str | None
    received_s: float
    deadline_s: float | None
    target_s: float | None = None  # when it should be answered: its deadline, or the configured target
    front: Front | None = None  # from which the policy is chosen when it begins
    measured: Measured | None = None  # of the image, by its header
    queue_ms: float = 0.0
    decode_ms: float = 0.0
    features_ms: float | None = None
    input_ms: float = 0.0  # making the models' inputs
    features: NDArray[np.float32] | None = None
    photograph: Photograph | None = None
    run: RequestRun | None = None
    crop: Crop | None = None  # the box that it is about; None: the whole image

    @property
    def is_file(self) -> bool:
        """Whether `data` is an image file of just what this request is about."""
        return self.request.pixels is None and self.crop is None

    def decoded(self, needed_px: int) -> Photograph:
        """Return what the request is about, decoded with at least this shorter side if the original has it.

        Raises as `jetsel.image.decode` and `from_pixels` do, and BadRequestError for a bad box.
        """
        return self._whole(needed_px) if self.crop is None else self.crop.photograph(lambda: self._whole(MAX_SIDE_PX))

    def _whole(self, needed_px: int) -> Photograph:
        if self.request.pixels is not None:
            return image.from_pixels(self.data, self.request.pixels, self.snapshot.limits)
        return image.decode(self.data, self.snapshot.limits, needed_px, self.measured)
