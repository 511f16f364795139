"""The state of the daemon, as `status` replies.

A client needs `v`, `id` and `state` alone. What a daemon of another version does not send is unknown: None or empty.
"""

from __future__ import annotations

from msgspec import Struct

from jetsel.wire.counts import AnswerCounts, RecentAnswer
from jetsel.wire.power import PowerStatus


class QueueStatus(Struct, frozen=True):
    """The requests that were admitted and not answered: begun or not, what they hold, and the limits of each."""

    waiting: int | None = None
    working: int | None = None
    workers: int | None = None
    bytes: int | None = None
    pixels: int | None = None
    most_requests: int | None = None
    most_bytes: int | None = None


class HostStatus(Struct, frozen=True):
    """One engine host: `state` is idle, running, restarting or failed; `reason` says why it does not run.

    `last_end` says how the last one ended, `last_end_ago_s` when; null if none has.
    """

    backend: str = ""
    state: str = ""
    reason: str | None = None
    pid: int | None = None
    restarts: int | None = None
    last_end: str | None = None
    last_end_ago_s: float | None = None


class ReloadStatus(Struct, frozen=True):
    """The last reload: what it changed, or why it was refused."""

    ago_s: float | None = None
    took_s: float | None = None
    changed: list[str] = []
    refused: str | None = None


class CalibrationIdentity(Struct, frozen=True):
    """Which calibration is in use. `number` is this device's, null for one that came with the models.

    `sha256` is of the artefact: two devices if it is the same choose alike.
    """

    number: int | None = None
    created: str = ""
    sha256: str = ""


class ModelStatus(Struct, frozen=True):
    """One model as the daemon sees it: `state` is loading, ready, unloaded or unavailable, the latter with its reason.

    One that is unloaded is loaded by the next request that needs it. `load_ms` is what the last load took;
    `escalations` are the runs after which another model ran.
    """

    name: str = ""
    version: str = ""
    state: str = ""
    reason: str | None = None
    runs: int | None = None
    backend: str = ""
    escalations: int | None = None
    load_ms: float | None = None

    @property
    def serves(self) -> bool:
        """Whether a request for it is answered."""
        return self.state in ("ready", "unloaded")


class ConfidenceShift(Struct, frozen=True):
    """A model's mean confidence over its last `answers` by the default policy; `seen` is null while they are few."""

    model: str = ""
    answers: int | None = None
    seen: float | None = None
    calibrated: float | None = None
    is_significant: bool | None = None


class RefusalShift(Struct, frozen=True):
    """The share of the last `requests` with a promise that was in doubt; `seen` is null while they are few."""

    requests: int | None = None
    seen: float | None = None
    calibrated: float | None = None
    is_significant: bool | None = None


class DriftStatus(Struct, frozen=True):
    """How far photographs and confidences have moved from the calibration's.

    `indices` are population stability indices by feature, of the last `photographs` looked at; empty, and `highest`
    (the feature that moved most) and the median null, with why in `reason`. `hint` says what to do, null for nothing.
    """

    photographs: int | None = None
    indices: dict[str, float] = {}
    highest: str | None = None
    median_index: float | None = None
    reason: str | None = None
    confidences: list[ConfidenceShift] = []
    hint: str | None = None
    refusals: RefusalShift | None = None


class PromiseStatus(Struct, frozen=True):
    """A level that the default policy can promise: the share of images that it answers, the rest is in doubt."""

    wrong_at_most: float | None = None
    answered: float | None = None


class OperatingPoint(Struct, frozen=True):
    """What a policy gave on the calibration's photographs, held out: the share it was right on, and its mean time."""

    policy: str = ""
    accuracy: float | None = None
    mean_ms: float | None = None


class FrontPoint(Struct, frozen=True):
    """A policy of the front: what it gave on the calibration's images, held out, and its `answers`.

    `energy_mj` is null if the calibration did not measure it.
    """

    policy: str = ""
    accuracy: float | None = None
    mean_ms: float | None = None
    energy_mj: float | None = None
    answers: int | None = None


class FrontStatus(Struct, frozen=True):
    """The operating points of the default policy, the most accurate first.

    `last` answered the last request, null if none did yet. `floor` is the cheapest one that load and power budget lead
    to, in use for `cheapest_s` seconds; 0 if it is not in use, or the only one that they lead to.
    """

    points: list[FrontPoint] = []
    last: str | None = None
    floor: str = ""
    cheapest_s: float | None = None


class FamilyStatus(Struct, frozen=True):
    """One family: its models cheapest first, the policies that a request may name, and what decides by default.

    `escalated` of its `answers` took more than one model. `wrong_at_most` is what requests that do not say it get, null
    for no promise; `promises` are those of the default policy. `front` is null without a latency target or power
    budget. `not_calibrated` names the models that the calibration in use, or one set aside, does not know so: no policy
    uses them.
    """

    name: str = ""
    classes: int | None = None
    models: list[ModelStatus] = []
    policies: list[str] = []
    default_policy: str = ""
    because: str = ""
    fallback: str | None = None
    calibration: str | None = None
    promises: list[PromiseStatus] = []
    objective: str | None = None
    answers: int | None = None
    escalated: int | None = None
    calibration_identity: CalibrationIdentity | None = None
    drift: DriftStatus | None = None
    operating_points: list[OperatingPoint] | None = None
    wrong_at_most: float | None = None
    front: FrontStatus | None = None
    not_calibrated: list[str] = []


class EdgeModelStatus(Struct, frozen=True):
    """A model of the edge. reason: why it cannot be asked, null if it can; times are of the server's own work."""

    name: str = ""
    remote: str = ""
    reason: str | None = None
    mean_ms: float | None = None


class EdgeServerStatus(Struct, frozen=True):
    """One of the edges; the fields are as in EdgeStatus, of this one alone."""

    url: str = ""
    reason: str | None = None
    network_ms: float | None = None
    runs: dict[str, int] = {}


class EdgeStatus(Struct, frozen=True):
    """The edge: why it cannot be asked, null if it can, what the way there and back takes, and what was asked of it.

    `network_ms` is for a photograph of `usual_bytes`. `runs` counts by how they ended: answered, late (when it was not
    waited for any more), failed, cancelled. Of several edges, url, reason and times are those of the one in use, and
    counts and bytes the sums of all; `servers` has each, `handovers` how often another came into use.
    """

    url: str = ""
    reason: str | None = None
    network_ms: float | None = None
    usual_bytes: int | None = None
    runs: dict[str, int] = {}
    sent_bytes: int | None = None
    received_bytes: int | None = None
    models: list[EdgeModelStatus] = []
    servers: list[EdgeServerStatus] = []
    handovers: int | None = None


class StatusReply(Struct, tag="status", tag_field="type", frozen=True):
    """The state of the daemon. `state` is loading, ready or stopping; `requests` counts by outcome or error code.

    `instance` names this run of the daemon: the counters begin with it.
    `progress` says how far the loading is, as in "loading 2 of 5"; null once it is done. `config` is the file that a
    reload reads; null for the built-in defaults.
    """

    v: int
    id: str
    state: str
    version: str = ""
    pid: int | None = None
    instance: str = ""
    uptime_s: float | None = None
    endpoints: list[str] = []
    default_family: str | None = None
    families: list[FamilyStatus] = []
    broken: list[str] = []
    requests: dict[str, int] = {}
    queue: QueueStatus = QueueStatus()
    lost_replies: int | None = None
    resident_mb: float | None = None
    power: PowerStatus = PowerStatus()
    answers: AnswerCounts = AnswerCounts()
    max_image_mb: float | None = None
    progress: str | None = None
    hosts: list[HostStatus] = []
    reloads: dict[str, int] = {}
    last_reload: ReloadStatus | None = None
    config: str | None = None
    recent: list[RecentAnswer] = []
    edge: EdgeStatus | None = None
