"""One model of the edge server as the driver runs it: what of an image is sent, and what its answer becomes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from jetsel import image
from jetsel.base.errors import JetselError
from jetsel.edge.messages import Remote
from jetsel.edge.runner import Arrived as Answered
from jetsel.edge.runner import EdgeAnswer, Photograph
from jetsel.edge.server import Server
from jetsel.image import InputSpec, jpeg, model_input, smaller_size
from jetsel.policies import Prediction
from jetsel.policies.policy import confidence_of
from jetsel.runtime import RequestRun
from jetsel.runtime.infer import predict
from jetsel.runtime.request_run import Handle
from jetsel.runtime.runner import Arrived, Traffic
from jetsel.wire import Classify

BYTES_PER_PIXEL = 0.4  # of what jetsel.image.jpeg makes of images: of four in five 0.2 to 0.6


class Owner(Protocol):
    """The owner of a request run, as far as its image goes to the edge server: as it came, and decoded."""

    request: Classify
    data: memoryview
    photograph: image.Photograph | None


class EdgeServers(Protocol):
    """The edge servers as a model there needs them: see jetsel.edge.runner.Edge."""

    def server(self, model: str) -> Server:
        """Return the one that this model is asked at."""

    def unavailable(self, model: str) -> str | None:
        """Return why this model cannot be asked now, None if it can."""

    def ask(self, model: str, photograph: Photograph, patience_ms: float | None, arrived: Answered) -> int:
        """Have the model look at an image; returns a number to cancel it by."""

    def cancel(self, number: int) -> None:
        """Have a request forgotten."""


@dataclass(frozen=True)
class EdgeRunner:
    """One model of the edge, as the driver runs it.

    spec: of its input, None where it takes encoded photographs; those are reduced to `shorter_px` before, where that is
    not None.
    """

    edge: EdgeServers
    name: str
    remote: Remote
    spec: InputSpec | None
    shorter_px: int | None = None
    now: Callable[[], float] = time.monotonic  # of the driver

    @property
    def unavailable(self) -> str | None:
        """Why it cannot be asked now."""
        return self.edge.unavailable(self.name)

    def submit(self, model: str, run: RequestRun, arrived: Arrived) -> Handle:
        """Send the photograph of the run's owner."""

        def deliver(answer: EdgeAnswer | JetselError) -> None:
            if isinstance(answer, EdgeAnswer):
                traffic = Traffic(answer.result.sent_bytes, answer.result.received_bytes)
                arrived(self._prediction(model, run, answer), traffic)
            else:
                arrived(answer, None)

        left_ms = None if run.deadline_s is None else (run.deadline_s - self.now()) * 1e3
        return _Submitted(self.edge, self.edge.ask(self.name, self._payload(run.owner), left_ms, deliver))

    def _payload(self, owner: Owner) -> Photograph:
        assert owner.photograph is not None
        if self.spec is not None:
            return tensor(model_input(owner.photograph, self.spec))
        if self.shorter_px is None and owner.request.pixels is None:
            return Photograph(bytes(owner.data))
        return Photograph(jpeg(owner.photograph.bgr, self.shorter_px))

    def bytes_for(self, width_px: int, height_px: int, file_bytes: int | None) -> int:
        """Return how much is sent for a photograph of this size, about. file_bytes: None where it came as pixels."""
        if self.spec is not None:
            return len(self.remote.probe)
        if self.shorter_px is None and file_bytes is not None:
            return file_bytes
        if self.shorter_px is not None:
            width_px, height_px = smaller_size(width_px, height_px, self.shorter_px)
        return round(width_px * height_px * BYTES_PER_PIXEL)

    def _prediction(self, model: str, run: RequestRun, answer: EdgeAnswer) -> Prediction:
        values = answer.values
        if self.remote.output == "logits":
            return predict(model, values, 1.0, run.criterion)
        return Prediction(model, values, confidence_of(values, run.criterion))


@dataclass(frozen=True)
class _Submitted:
    edge: EdgeServers
    number: int

    def cancel(self) -> None:
        """See Handle."""
        self.edge.cancel(self.number)


def tensor(numbers: NDArray[np.float32]) -> Photograph:
    """Return a model's input (1, 3, height, width) as it is sent."""
    return Photograph(numbers.astype("<f4").tobytes(), list(numbers.shape))
