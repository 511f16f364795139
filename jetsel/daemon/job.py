"""One classify request from its message to its answer: what is known of it at each stage."""

from __future__ import annotations

from msgspec import Struct

from jetsel.daemon.admission import Load
from jetsel.daemon.family import ServedFamily
from jetsel.daemon.message import Route
from jetsel.daemon.snapshot import Snapshot
from jetsel.image import Measured, Photograph
from jetsel.policies import Policy
from jetsel.runtime import Flight
from jetsel.wire import Classify


class Job(Struct, eq=False):
    """An admitted request. Times are seconds on the monotonic clock, stages in milliseconds."""

    route: Route
    request: Classify
    data: memoryview
    load: Load
    snapshot: Snapshot
    family: ServedFamily
    policy: Policy
    fallback: str | None
    received_s: float
    deadline_s: float | None
    measured: Measured | None = None  # what the door saw of the image; None: it did not look
    queue_ms: float = 0.0
    decode_ms: float = 0.0
    features_ms: float | None = None
    features: dict[str, float] | None = None
    photograph: Photograph | None = None
    flight: Flight | None = None
    is_probe: bool = False  # the daemon's own: nobody waits for its reply, and nothing counts it
